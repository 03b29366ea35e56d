"""Questions of the stated class with gold SQL, written without looking at the parser's; and questions to be refused."""

from __future__ import annotations

_SD = "student s JOIN class k ON k.id=s.class_id JOIN major m ON m.id=k.major_id JOIN department d ON d.id=m.department_id"
_SE = "student s JOIN enrolment e ON e.student_id=s.id JOIN offering o ON o.id=e.offering_id"
_FIRST = f"{_SE} JOIN grade g ON g.enrolment_id=e.id AND g.attempt=1"
_BEST = f"{_SE} JOIN (SELECT enrolment_id i, MAX(score) x FROM grade GROUP BY 1) b ON b.i=e.id JOIN course c ON c.id=o.course_id"
_POINTS = "(b.x>=60)+(b.x>=70)+(b.x>=80)+(b.x>=90)"
_GPA = f"ROUND(SUM(({_POINTS})*c.credits)/SUM(c.credits),2)"
_WHERE = "JOIN class k ON k.id=s.class_id JOIN major m ON m.id=k.major_id JOIN department d ON d.id=m.department_id"
_FAILS = (
    "(SELECT e.student_id f, o.course_id c FROM enrolment e JOIN offering o ON o.id=e.offering_id "
    "JOIN grade g ON g.enrolment_id=e.id GROUP BY 1,2 HAVING MAX(g.score)<60)"
)

ANSWERED: tuple[tuple[str, str], ...] = (
    ("查询当前仍有挂科的学生", f"SELECT DISTINCT number FROM student JOIN {_FAILS} ON f=student.id"),
    ("张伟的绩点是多少", f"SELECT s.number, {_GPA} FROM {_BEST} WHERE s.name='张伟' GROUP BY s.id"),
    (
        "哪门课挂科率最高",
        (
            f"SELECT c.name_zh, ROUND(AVG(g.score<60)*100,2) r FROM {_FIRST} JOIN course c ON c.id=o.course_id "
            "GROUP BY c.id ORDER BY r DESC LIMIT 1"
        ),
    ),
    ("计算机学院有多少学生", f"SELECT COUNT(*) FROM {_SD} WHERE d.name_zh='计算机学院'"),
    (
        "每个专业的男生和女生人数",
        f"SELECT m.name_zh, s.gender, COUNT(*) FROM {_SD} GROUP BY m.id, s.gender",
    ),
    (
        "2025春每门课的平均分",
        (
            f"SELECT c.name_zh, ROUND(AVG(g.score),2) FROM {_FIRST} JOIN course c ON c.id=o.course_id "
            "JOIN term t ON t.id=o.term_id WHERE t.name='2025春' GROUP BY c.id"
        ),
    ),
    (
        "各学院有多少名教师",
        "SELECT d.name_zh, COUNT(*) FROM teacher t JOIN department d ON d.id=t.department_id GROUP BY d.id",
    ),
    (
        "哪个学院学生最多",
        f"SELECT d.name_zh, COUNT(*) n FROM {_SD} GROUP BY d.id ORDER BY n DESC LIMIT 1",
    ),
    (
        "数据结构的及格率是多少",
        f"SELECT ROUND(AVG(g.score>=60)*100,2) FROM {_FIRST} JOIN course c ON c.id=o.course_id WHERE c.name_zh='数据结构'",
    ),
    (
        "各学院的挂科学生人数",
        f"SELECT d.name_zh, COUNT(DISTINCT s.id) FROM {_SD} JOIN {_FAILS} ON f=s.id GROUP BY d.id",
    ),
    (
        "谁教数据结构",
        (
            "SELECT DISTINCT t.number FROM teacher t JOIN offering o ON o.teacher_id=t.id JOIN course c ON c.id=o.course_id "
            "WHERE c.name_zh='数据结构'"
        ),
    ),
    ("列出法学院的女生", f"SELECT s.number FROM {_SD} WHERE d.name_zh='法学院' AND s.gender='女'"),
    (
        "数学学院有哪些课程",
        "SELECT c.name_zh FROM course c JOIN department d ON d.id=c.department_id WHERE d.name_zh='数学学院'",
    ),
    (
        "数学学院有多少门课程",
        "SELECT COUNT(*) FROM course c JOIN department d ON d.id=c.department_id WHERE d.name_zh='数学学院'",
    ),
    (
        "软件工程专业的平均绩点",
        f"SELECT {_GPA} FROM {_BEST} {_WHERE} WHERE m.name_zh='软件工程'",
    ),
    (
        "各班级的平均成绩",
        f"SELECT k.name, ROUND(AVG(g.score),2) FROM {_FIRST} JOIN class k ON k.id=s.class_id GROUP BY k.id",
    ),
    (
        "上学期各学院的及格率",
        (
            f"SELECT d.name_zh, ROUND(AVG(g.score>=60)*100,2) FROM {_FIRST} {_WHERE} JOIN term t ON t.id=o.term_id "
            "WHERE t.name='2026春' GROUP BY d.id"
        ),
    ),
    (
        "挂科率最高的五门课程",
        (
            f"SELECT c.name_zh, ROUND(AVG(g.score<60)*100,2) r FROM {_FIRST} JOIN course c ON c.id=o.course_id "
            "GROUP BY c.id ORDER BY r DESC LIMIT 5"
        ),
    ),
    (
        "绩点高于3.8的学生",
        f"SELECT s.number, {_GPA} p FROM {_BEST} GROUP BY s.id HAVING p>3.8",
    ),
    (
        "教课最多的老师是谁",
        (
            "SELECT t.number, COUNT(DISTINCT o.course_id) n FROM teacher t JOIN offering o ON o.teacher_id=t.id "
            "GROUP BY t.id ORDER BY n DESC, t.number LIMIT 1"
        ),
    ),
    (
        "本学期有多少门课程",
        "SELECT COUNT(DISTINCT o.course_id) FROM offering o JOIN term t ON t.id=o.term_id WHERE t.is_current",
    ),
    (
        "高等数学的最高分",
        (
            "SELECT MAX(g.score) FROM grade g JOIN enrolment e ON e.id=g.enrolment_id JOIN offering o ON o.id=e.offering_id "
            "JOIN course c ON c.id=o.course_id WHERE c.name_zh='高等数学'"
        ),
    ),
    (
        "average grade of each department this term",
        (
            f"SELECT d.name_en, ROUND(AVG(g.score),2) FROM {_FIRST} {_WHERE} JOIN term t ON t.id=o.term_id "
            "WHERE t.is_current GROUP BY d.id"
        ),
    ),
    ("how many students are in each department", f"SELECT d.name_en, COUNT(*) FROM {_SD} GROUP BY d.id"),
    (
        "Which teacher teaches the most courses?",
        (
            "SELECT t.number, COUNT(DISTINCT o.course_id) n FROM teacher t JOIN offering o ON o.teacher_id=t.id "
            "GROUP BY t.id ORDER BY n DESC, t.number LIMIT 1"
        ),
    ),
    (
        "list the courses of the School of Mathematics",
        "SELECT c.name_en FROM course c JOIN department d ON d.id=c.department_id WHERE d.name_en='School of Mathematics'",
    ),
    (
        "students with a GPA above 3.5 in the law school",
        f"SELECT s.number, {_GPA} p FROM {_BEST} {_WHERE} WHERE d.name_en='School of Law' GROUP BY s.id HAVING p>3.5",
    ),
    (
        "How many teachers does each department have?",
        "SELECT d.name_en, COUNT(*) FROM teacher t JOIN department d ON d.id=t.department_id GROUP BY d.id",
    ),
    (
        "Which department has the most students?",
        f"SELECT d.name_en, COUNT(*) n FROM {_SD} GROUP BY d.id ORDER BY n DESC LIMIT 1",
    ),
    (
        "the five courses with the lowest pass rate",
        (
            f"SELECT c.name_en, ROUND(AVG(g.score>=60)*100,2) r FROM {_FIRST} JOIN course c ON c.id=o.course_id "
            "GROUP BY c.id ORDER BY r LIMIT 5"
        ),
    ),
    (
        "list the female students of the School of Law",
        f"SELECT s.number FROM {_SD} WHERE d.name_zh='法学院' AND s.gender='女'",
    ),
    (
        "who teaches Operating Systems",
        (
            "SELECT DISTINCT t.number FROM teacher t JOIN offering o ON o.teacher_id=t.id JOIN course c ON c.id=o.course_id "
            "WHERE c.name_en='Operating Systems'"
        ),
    ),
    (
        "average grade of Calculus in 2025 autumn",
        (
            f"SELECT ROUND(AVG(g.score),2) FROM {_FIRST} JOIN course c ON c.id=o.course_id JOIN term t ON t.id=o.term_id "
            "WHERE c.name_en='Calculus' AND t.name='2025秋'"
        ),
    ),
    ("How many male students are there?", "SELECT COUNT(*) FROM student WHERE gender='男'"),
    (
        "number of majors per department",
        "SELECT d.name_en, COUNT(*) FROM major m JOIN department d ON d.id=m.department_id GROUP BY d.id",
    ),
    (
        "how many courses are offered this term",
        "SELECT COUNT(DISTINCT o.course_id) FROM offering o JOIN term t ON t.id=o.term_id WHERE t.is_current",
    ),
    (
        "fail rate by course",
        f"SELECT c.name_en, ROUND(AVG(g.score<60)*100,2) FROM {_FIRST} JOIN course c ON c.id=o.course_id GROUP BY c.id",
    ),
    (
        "students currently failing in the School of Physics",
        f"SELECT DISTINCT s.number FROM {_SD} JOIN {_FAILS} ON f=s.id WHERE d.name_zh='物理学院'",
    ),
    (
        "how many students are still failing in each major",
        f"SELECT m.name_en, COUNT(DISTINCT s.id) FROM {_SD} JOIN {_FAILS} ON f=s.id GROUP BY m.id",
    ),
    (
        "average GPA of each major",
        f"SELECT m.name_en, {_GPA} FROM {_BEST} {_WHERE} GROUP BY m.id",
    ),
    (
        "list the majors of the School of Economics",
        "SELECT m.name_en FROM major m JOIN department d ON d.id=m.department_id WHERE d.name_en='School of Economics'",
    ),
    (
        "pass rate of Data Structures last term",
        (
            f"SELECT ROUND(AVG(g.score>=60)*100,2) FROM {_FIRST} JOIN course c ON c.id=o.course_id JOIN term t ON t.id=o.term_id "
            "WHERE c.name_en='Data Structures' AND t.name='2026春'"
        ),
    ),
    (
        "courses with a fail rate over 15",
        f"SELECT c.name_en, ROUND(AVG(g.score<60)*100,2) r FROM {_FIRST} JOIN course c ON c.id=o.course_id GROUP BY c.id HAVING r>15",
    ),
    (
        "lowest score in Criminal Law",
        (
            "SELECT MIN(g.score) FROM grade g JOIN enrolment e ON e.id=g.enrolment_id JOIN offering o ON o.id=e.offering_id "
            "JOIN course c ON c.id=o.course_id WHERE c.name_en='Criminal Law'"
        ),
    ),
    (
        "teachers in the chemistry department",
        "SELECT t.number FROM teacher t JOIN department d ON d.id=t.department_id WHERE d.name_zh='化学学院'",
    ),
)

REFUSED: tuple[str, ...] = (
    "今天天气怎么样",
    "老师的工资是多少",
    "情况怎么样",
    "删除所有学生",
    "食堂几点开门",
    "谁是最好的老师",
    "学生最喜欢哪门课",
    "学生和课程",
    "平均分和绩点",
    "按学院",
    "前五名",
    "哪个最多",
    "图书馆有多少本书",
    "张伟的电话号码",
    "预测明年的挂科率",
    "delete all students",
    "show me everything",
    "what is the weather today",
    "how much do teachers earn",
    "how many",
    "list the students and the courses",
    "the best",
    "average grade and GPA of each department",
    "students older than 20",
    "drop table student",
    "who is the president of the university",
    "students who like Calculus",
    "42",
    "?",
)
