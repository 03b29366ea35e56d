-- The demo campus. Names carry their language; every fact is made up by build.py from a seed.

CREATE TABLE department (id INTEGER PRIMARY KEY, name_zh TEXT NOT NULL, name_en TEXT NOT NULL);

CREATE TABLE major (
    id INTEGER PRIMARY KEY,
    department_id INTEGER NOT NULL REFERENCES department (id),
    name_zh TEXT NOT NULL,
    name_en TEXT NOT NULL
);

CREATE TABLE class (
    id INTEGER PRIMARY KEY,
    major_id INTEGER NOT NULL REFERENCES major (id),
    name TEXT NOT NULL,
    grade_year INTEGER NOT NULL
);

CREATE TABLE student (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    gender TEXT NOT NULL CHECK (gender IN ('男', '女')),
    class_id INTEGER NOT NULL REFERENCES class (id),
    enrolled_year INTEGER NOT NULL
);

CREATE TABLE teacher (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    title_zh TEXT NOT NULL,
    title_en TEXT NOT NULL,
    department_id INTEGER NOT NULL REFERENCES department (id)
);

CREATE TABLE course (
    id INTEGER PRIMARY KEY,
    code TEXT NOT NULL UNIQUE,
    name_zh TEXT NOT NULL,
    name_en TEXT NOT NULL,
    credits REAL NOT NULL,
    department_id INTEGER NOT NULL REFERENCES department (id)
);

CREATE TABLE term (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    year INTEGER NOT NULL,
    season_zh TEXT NOT NULL CHECK (season_zh IN ('春', '秋')),
    season_en TEXT NOT NULL CHECK (season_en IN ('spring', 'autumn')),
    is_current INTEGER NOT NULL CHECK (is_current IN (0, 1))
);

CREATE TABLE offering (
    id INTEGER PRIMARY KEY,
    course_id INTEGER NOT NULL REFERENCES course (id),
    term_id INTEGER NOT NULL REFERENCES term (id),
    teacher_id INTEGER NOT NULL REFERENCES teacher (id)
);

CREATE TABLE enrolment (
    id INTEGER PRIMARY KEY,
    student_id INTEGER NOT NULL REFERENCES student (id),
    offering_id INTEGER NOT NULL REFERENCES offering (id),
    UNIQUE (student_id, offering_id)
);

CREATE TABLE grade (
    id INTEGER PRIMARY KEY,
    enrolment_id INTEGER NOT NULL REFERENCES enrolment (id),
    attempt INTEGER NOT NULL CHECK (attempt IN (1, 2)),
    score REAL NOT NULL,
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    UNIQUE (enrolment_id, attempt)
);

CREATE TABLE attendance (
    id INTEGER PRIMARY KEY,
    enrolment_id INTEGER NOT NULL REFERENCES enrolment (id),
    session INTEGER NOT NULL CHECK (session > 0),
    status_zh TEXT NOT NULL CHECK (status_zh IN ('出勤', '缺勤', '迟到', '请假')),
    status_en TEXT NOT NULL CHECK (status_en IN ('present', 'absent', 'late', 'leave')),
    UNIQUE (enrolment_id, session)
);

CREATE TABLE scholarship (
    id INTEGER PRIMARY KEY,
    name_zh TEXT NOT NULL,
    name_en TEXT NOT NULL,
    amount INTEGER NOT NULL
);

CREATE TABLE award (
    id INTEGER PRIMARY KEY,
    student_id INTEGER NOT NULL REFERENCES student (id),
    scholarship_id INTEGER NOT NULL REFERENCES scholarship (id),
    year INTEGER NOT NULL,
    UNIQUE (student_id, scholarship_id, year)
);

CREATE TABLE dormitory (
    id INTEGER PRIMARY KEY,
    name_zh TEXT NOT NULL,
    name_en TEXT NOT NULL,
    gender TEXT NOT NULL CHECK (gender IN ('男', '女'))
);

CREATE TABLE room (
    id INTEGER PRIMARY KEY,
    dormitory_id INTEGER NOT NULL REFERENCES dormitory (id),
    number TEXT NOT NULL,
    floor INTEGER NOT NULL,
    beds INTEGER NOT NULL CHECK (beds > 0),
    UNIQUE (dormitory_id, number)
);

CREATE TABLE residence (
    id INTEGER PRIMARY KEY,
    student_id INTEGER NOT NULL UNIQUE REFERENCES student (id),
    room_id INTEGER NOT NULL REFERENCES room (id),
    bed INTEGER NOT NULL CHECK (bed > 0),
    UNIQUE (room_id, bed)
);

CREATE INDEX major_department ON major (department_id);

CREATE INDEX class_major ON class (major_id);

CREATE INDEX student_class ON student (class_id);

CREATE INDEX student_name ON student (name);

CREATE INDEX teacher_department ON teacher (department_id);

CREATE INDEX course_department ON course (department_id);

CREATE INDEX offering_course ON offering (course_id);

CREATE INDEX offering_term ON offering (term_id);

CREATE INDEX offering_teacher ON offering (teacher_id);

CREATE INDEX enrolment_offering ON enrolment (offering_id);

CREATE INDEX award_scholarship ON award (scholarship_id);
