-- What the gold SQL is written on, so that it shares no text with the parser's: people, attempts, best scores, open failures,
-- roll calls, awards, rooms. Tables, because hundreds of questions look at them.
CREATE TEMP TABLE person AS
SELECT s.id, s.number, s.name, s.gender, s.enrolled_year AS year, k.name AS class, m.name_zh AS major_zh,
    m.name_en AS major_en, d.name_zh AS dept_zh, d.name_en AS dept_en
FROM student s, class k, major m, department d
WHERE k.id = s.class_id AND m.id = k.major_id AND d.id = m.department_id;

CREATE TEMP TABLE offered AS
SELECT o.id, c.id AS course, c.name_zh AS course_zh, c.name_en AS course_en, c.credits, cd.name_zh AS cdept_zh,
    cd.name_en AS cdept_en, t.id AS term, t.name AS term_name, t.is_current AS now, h.id AS teacher, h.number AS tnumber,
    hd.name_zh AS tdept_zh, hd.name_en AS tdept_en
FROM offering o, course c, department cd, term t, teacher h, department hd
WHERE c.id = o.course_id AND cd.id = c.department_id AND t.id = o.term_id AND h.id = o.teacher_id AND hd.id = h.department_id;

CREATE TEMP TABLE taken AS
SELECT e.id AS enrolment, p.id AS student, p.number, p.name, p.gender, p.year, p.class, p.major_zh, p.major_en, p.dept_zh,
    p.dept_en, o.*
FROM enrolment e, person p, offered o WHERE p.id = e.student_id AND o.id = e.offering_id;

CREATE TEMP TABLE attempt AS SELECT x.*, g.attempt, g.score FROM taken x, grade g WHERE g.enrolment_id = x.enrolment;

CREATE TEMP TABLE first AS SELECT * FROM attempt WHERE attempt = 1;

CREATE TEMP TABLE best AS
SELECT x.*, (SELECT MAX(g.score) FROM grade g WHERE g.enrolment_id = x.enrolment) AS score
FROM taken x WHERE EXISTS (SELECT 1 FROM grade g WHERE g.enrolment_id = x.enrolment);

CREATE TEMP TABLE pointed AS
SELECT *, credits * ((score >= 60) + (score >= 70) + (score >= 80) + (score >= 90)) AS earned FROM best;

CREATE TEMP TABLE gpa AS
SELECT student, number, name, gender, year, class, major_zh, major_en, dept_zh, dept_en,
    ROUND(SUM(earned) / SUM(credits), 2) AS gpa
FROM pointed GROUP BY student;

CREATE TEMP TABLE failing AS
SELECT x.* FROM taken x JOIN (SELECT student, course FROM best GROUP BY 1, 2 HAVING MAX(score) < 60) f
ON f.student = x.student AND f.course = x.course;

CREATE TEMP TABLE called AS
SELECT x.student, x.number, x.name, x.gender, x.year, x.class, x.major_zh, x.major_en, x.dept_zh, x.dept_en, x.course, x.course_zh,
    x.course_en, x.cdept_zh, x.cdept_en, x.term, x.term_name, x.now, x.tnumber, a.session, a.status_zh, a.status_en
FROM taken x JOIN attendance a ON a.enrolment_id = x.enrolment;

CREATE TEMP TABLE awarded AS
SELECT p.*, w.id AS award, w.year AS given, h.name_zh AS kind_zh, h.name_en AS kind_en, h.amount
FROM award w, person p, scholarship h WHERE p.id = w.student_id AND h.id = w.scholarship_id;

CREATE TEMP TABLE lodging AS
SELECT r.id, h.name_zh AS hall_zh, h.name_en AS hall_en, h.gender, r.number AS room, r.floor, r.beds,
    (SELECT COUNT(*) FROM residence x WHERE x.room_id = r.id) AS used
FROM room r, dormitory h WHERE h.id = r.dormitory_id;

CREATE TEMP TABLE lodged AS
SELECT p.*, r.id AS room_id, r.hall_zh, r.hall_en, r.room, r.floor, r.beds, x.bed
FROM residence x, person p, lodging r WHERE p.id = x.student_id AND r.id = x.room_id;

CREATE INDEX temp.best_of_student ON best (student);

CREATE INDEX temp.taken_course ON taken (course);

CREATE INDEX temp.called_course ON called (course);
