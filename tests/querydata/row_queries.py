"""Questions in SQL of every shape that a filter by rows could get wrong, and statements that try to get around it."""

QUERIES = (
    # one table
    "SELECT name FROM student",
    "SELECT * FROM student",
    "SELECT COUNT(*) FROM student",
    "SELECT COUNT(*), MIN(score), MAX(score), ROUND(AVG(score), 6) FROM grade",
    "SELECT DISTINCT gender FROM student",
    "SELECT name AS n FROM student AS s WHERE s.gender = '女' ORDER BY n, s.id LIMIT 20",
    "SELECT NUMBER FROM STUDENT AS S WHERE s.Enrolled_Year >= 2024",
    'SELECT "s"."name" FROM "student" AS "s"',
    "SELECT [name] FROM [student]",
    "SELECT name FROM teacher ORDER BY number DESC",
    "SELECT COUNT(DISTINCT student_id) FROM enrolment",
    "SELECT name FROM student WHERE name LIKE '张%' OR 1 = 1",
    "SELECT 1 FROM student WHERE id NOT IN (1, 2, 3)",
    # tables that all may see
    "SELECT name_en FROM department",
    "SELECT c.name_en, d.name_en FROM course AS c JOIN department AS d ON d.id = c.department_id",
    # joins
    "SELECT s.name, c.name FROM student s JOIN class c ON c.id = s.class_id",
    "SELECT student.name FROM student JOIN class USING (id)",
    "SELECT d.name_en, COUNT(*) FROM teacher t JOIN department d ON d.id = t.department_id GROUP BY d.id",
    "SELECT d.id, COUNT(t.id) FROM department d LEFT JOIN teacher t ON t.department_id = d.id GROUP BY d.id",
    "SELECT d.id FROM department d LEFT JOIN teacher t ON t.department_id = d.id WHERE t.id IS NULL",
    "SELECT m.id, COUNT(c.id) FROM major m LEFT JOIN class AS c ON c.major_id = m.id AND c.grade_year = 2025 GROUP BY m.id",
    "SELECT o.id FROM offering o LEFT JOIN enrolment e ON e.offering_id = o.id WHERE e.id IS NULL",
    "SELECT COUNT(*) FROM enrolment e LEFT JOIN grade g ON g.enrolment_id = e.id WHERE g.id IS NULL",
    "SELECT t.name, c.name_en FROM offering o JOIN teacher t ON t.id = o.teacher_id JOIN course c ON c.id = o.course_id",
    "SELECT COUNT(*) FROM offering o LEFT JOIN teacher t ON t.id = o.teacher_id WHERE t.id IS NULL",
    "SELECT COUNT(*) FROM teacher t RIGHT JOIN offering o ON t.id = o.teacher_id WHERE t.id IS NULL",
    "SELECT s.id, t.id FROM student s FULL JOIN teacher t ON t.id = s.id",
    "SELECT a.name FROM student a JOIN student b ON a.name = b.name AND a.id < b.id",
    "SELECT COUNT(*) FROM student a LEFT JOIN student b ON b.class_id = a.class_id AND b.id > a.id WHERE b.id IS NULL",
    "SELECT COUNT(*) FROM (student AS s JOIN class AS c ON c.id = s.class_id)",
    "SELECT COUNT(*) FROM (SELECT s.id FROM student s JOIN class c ON c.id = s.class_id) AS x JOIN enrolment e ON e.student_id = x.id",
    # groups
    "SELECT class_id, COUNT(*) FROM student GROUP BY class_id HAVING COUNT(*) > 1",
    "SELECT gender, COUNT(*) AS n FROM student GROUP BY gender ORDER BY n DESC",
    (
        "SELECT o.term_id, ROUND(AVG(g.score), 4) FROM grade g JOIN enrolment e ON e.id = g.enrolment_id"
        " JOIN offering o ON o.id = e.offering_id GROUP BY o.term_id"
    ),
    (
        "SELECT c.name_en, ROUND(100.0 * SUM(g.score < 60) / COUNT(*), 4) FROM grade AS g JOIN enrolment e ON e.id = g.enrolment_id"
        " JOIN offering o ON o.id = e.offering_id JOIN course c ON c.id = o.course_id WHERE g.attempt = 1 GROUP BY c.id"
    ),
    "SELECT CASE WHEN score >= 60 THEN 'pass' ELSE 'fail' END AS r, COUNT(*) FROM grade GROUP BY r",
    "SELECT COALESCE(MAX(score), 0) FROM grade WHERE score < 0",
    # windows
    "SELECT name, RANK() OVER (ORDER BY number) FROM student",
    "SELECT id, COUNT(*) OVER () FROM student",
    "SELECT id, ROW_NUMBER() OVER (PARTITION BY class_id ORDER BY id) AS n FROM student",
    "SELECT id FROM (SELECT id, RANK() OVER (PARTITION BY class_id ORDER BY number DESC) AS r FROM student) AS x WHERE x.r = 1",
    "SELECT id, LAG(score) OVER (ORDER BY id) FROM grade",
    # unions
    "SELECT name FROM student UNION SELECT name FROM teacher",
    "SELECT id FROM student UNION ALL SELECT id FROM teacher UNION ALL SELECT id FROM class",
    "SELECT id FROM student EXCEPT SELECT student_id FROM enrolment",
    "SELECT id FROM student INTERSECT SELECT id FROM teacher",
    "SELECT COUNT(*) FROM (SELECT name FROM student UNION SELECT name FROM teacher) AS x",
    "SELECT 0 AS n, name_zh FROM department UNION SELECT id, name FROM student ORDER BY n LIMIT 50",
    # nested, correlated
    "SELECT name FROM student WHERE id IN (SELECT student_id FROM enrolment WHERE offering_id < 200)",
    "SELECT COUNT(*) FROM offering WHERE id NOT IN (SELECT offering_id FROM enrolment)",
    "SELECT s.name FROM student s WHERE EXISTS (SELECT 1 FROM enrolment e WHERE e.student_id = s.id AND e.offering_id > 300)",
    (
        "SELECT c.name_en FROM course c WHERE NOT EXISTS (SELECT 1 FROM offering o JOIN enrolment e ON e.offering_id = o.id"
        " WHERE o.course_id = c.id)"
    ),
    "SELECT d.name_en FROM department d WHERE NOT EXISTS (SELECT 1 FROM teacher WHERE teacher.department_id = d.id)",
    "SELECT d.id, (SELECT COUNT(*) FROM teacher t WHERE t.department_id = d.id) AS n FROM department d",
    "SELECT (SELECT COUNT(*) FROM student) AS a, (SELECT COUNT(*) FROM teacher) AS b, (SELECT MAX(score) FROM grade) AS c",
    "SELECT name_en, (SELECT name FROM student ORDER BY id LIMIT 1) AS first FROM department",
    "SELECT g.id FROM grade g JOIN (SELECT AVG(score) AS a FROM grade) AS x ON g.score > x.a",
    "SELECT id FROM grade WHERE score > (SELECT AVG(score) FROM grade)",
    "SELECT COUNT(*) FROM (SELECT * FROM (SELECT * FROM (SELECT * FROM student)))",
    "SELECT x.n FROM (SELECT * FROM (SELECT name AS n, COUNT(*) FROM student GROUP BY name)) AS x",
    "SELECT id FROM student AS grade WHERE EXISTS (SELECT 1 FROM enrolment AS student WHERE student.student_id = grade.id)",
    (
        "SELECT id FROM term WHERE (SELECT COUNT(*) FROM grade g JOIN enrolment e ON e.id = g.enrolment_id"
        " JOIN offering o ON o.id = e.offering_id WHERE o.term_id = term.id) > 4"
    ),
    # common names
    "WITH best AS (SELECT enrolment_id, MAX(score) AS top FROM grade GROUP BY enrolment_id) SELECT ROUND(AVG(top), 6) FROM best",
    "WITH t(a, b) AS (SELECT id, name FROM student) SELECT a, b FROM t ORDER BY t.b, a",
    "WITH a AS (SELECT * FROM student), b AS (SELECT * FROM a WHERE a.gender = '男') SELECT COUNT(*) FROM b",
    "WITH a AS (SELECT id FROM student) SELECT COUNT(*) FROM a AS x JOIN a AS y ON x.id = y.id",
    "SELECT name FROM student WHERE id IN (WITH e AS (SELECT student_id FROM enrolment) SELECT student_id FROM e)",
    "WITH permitted_student AS (SELECT id FROM teacher) SELECT COUNT(*) FROM student s JOIN permitted_student p ON p.id = s.id",
    "WITH a AS (SELECT id FROM student UNION SELECT id FROM teacher) SELECT id FROM a EXCEPT SELECT id FROM class",
)
"""All mean something whether rows are missing or not; none depends on an order that it does not ask for."""

ESCAPES = (
    "SELECT * FROM main.student",
    'SELECT * FROM "main"."student"',
    "SELECT main.student.name FROM student",
    "SELECT * FROM temp.student",
    "SELECT * FROM sqlite_master",
    "SELECT name FROM student UNION SELECT sql FROM sqlite_schema",
    "SELECT * FROM sqlite_stat1",
    "SELECT * FROM permitted_student",
    'SELECT * FROM "permitted_student"',
    "WITH student AS (SELECT * FROM student) SELECT * FROM student",
    'WITH "Student" AS (SELECT 1 AS id) SELECT * FROM student',
    "WITH class AS (SELECT 1 AS id, 1 AS major_id) SELECT name FROM student",
    "WITH major AS (SELECT id, 1 AS department_id FROM department) SELECT * FROM student",
    "SELECT * FROM student WHERE id IN (WITH major AS (SELECT 1 AS id) SELECT id FROM major)",
    "WITH RECURSIVE s AS (SELECT id FROM student UNION SELECT id FROM s) SELECT * FROM s",
    "SELECT * FROM student; SELECT * FROM student",
    "SELECT name FROM student /*! UNION SELECT name FROM main.student */",
    "SELECT rowid FROM student",
    "SELECT _rowid_, oid FROM student",
    "SELECT * FROM student NATURAL JOIN class",
    "SELECT s.name FROM student s JOIN class c ON 1 = 1",
    "SELECT * FROM (VALUES (1))",
    "TABLE student",
    "SELECT * FROM pragma_table_info('student')",
    "SELECT id FROM enrolment WHERE student_id IN student",
    "SELECT x.name FROM student AS s, (SELECT name FROM teacher) AS x",
    "SELECT s.name FROM student s(a, b)",
)
"""Refused for everybody, whoever asks."""
