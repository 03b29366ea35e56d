"""What the made-up campus is called: departments, courses, scholarships, halls, people; in both languages where it is natural."""

from __future__ import annotations

DEPARTMENTS = (
    ("计算机学院", "School of Computer Science"),
    ("数学学院", "School of Mathematics"),
    ("物理学院", "School of Physics"),
    ("外国语学院", "School of Foreign Languages"),
    ("经济学院", "School of Economics"),
    ("法学院", "School of Law"),
    ("化学学院", "School of Chemistry"),
    ("文学院", "School of Literature"),
)

MAJORS: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("软件工程", "Software Engineering"),
        ("人工智能", "Artificial Intelligence"),
        ("网络工程", "Network Engineering"),
    ),
    (("应用数学", "Applied Mathematics"), ("统计学", "Statistics")),
    (("应用物理", "Applied Physics"), ("光电科学", "Optoelectronics")),
    (("英语语言", "English Language"), ("日语", "Japanese")),
    (("金融学", "Finance"), ("国际贸易", "International Trade")),
    (("民商法", "Civil and Commercial Law"), ("国际法", "International Law")),
    (("应用化学", "Applied Chemistry"), ("材料化学", "Materials Chemistry")),
    (("汉语言文学", "Chinese Literature"), ("新闻学", "Journalism")),
)

COURSES: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("数据结构", "Data Structures"),
        ("操作系统", "Operating Systems"),
        ("计算机网络", "Computer Networks"),
        ("数据库原理", "Database Principles"),
        ("编译原理", "Compilers"),
        ("机器学习", "Machine Learning"),
        ("程序设计基础", "Programming Fundamentals"),
        ("软件测试", "Software Testing"),
        ("信息安全", "Information Security"),
        ("分布式系统", "Distributed Systems"),
    ),
    (
        ("高等数学", "Calculus"),
        ("线性代数", "Linear Algebra"),
        ("概率论", "Probability Theory"),
        ("数学分析", "Mathematical Analysis"),
        ("离散数学", "Discrete Mathematics"),
        ("数理统计", "Mathematical Statistics"),
        ("微分方程", "Differential Equations"),
        ("数值计算", "Numerical Computing"),
        ("抽象代数", "Abstract Algebra"),
    ),
    (
        ("大学物理", "University Physics"),
        ("理论力学", "Theoretical Mechanics"),
        ("电磁学", "Electromagnetism"),
        ("量子力学", "Quantum Mechanics"),
        ("热力学", "Thermodynamics"),
        ("光学", "Optics"),
        ("固体物理", "Solid State Physics"),
        ("物理实验", "Physics Laboratory"),
    ),
    (
        ("大学英语", "College English"),
        ("英语写作", "English Writing"),
        ("英语听力", "English Listening"),
        ("翻译理论", "Translation Theory"),
        ("基础日语", "Basic Japanese"),
        ("日语阅读", "Japanese Reading"),
        ("语言学概论", "Introduction to Linguistics"),
        ("英美文化", "Anglo-American Culture"),
    ),
    (
        ("微观经济学", "Microeconomics"),
        ("宏观经济学", "Macroeconomics"),
        ("会计学", "Accounting"),
        ("货币银行", "Money and Banking"),
        ("国际金融", "International Finance"),
        ("计量经济学", "Econometrics"),
        ("投资学", "Investments"),
        ("财政学", "Public Finance"),
    ),
    (
        ("宪法学", "Constitutional Law"),
        ("民法总论", "General Civil Law"),
        ("刑法学", "Criminal Law"),
        ("合同法", "Contract Law"),
        ("行政法", "Administrative Law"),
        ("知识产权法", "Intellectual Property Law"),
        ("诉讼法", "Procedural Law"),
        ("法理学", "Jurisprudence"),
    ),
    (
        ("无机化学", "Inorganic Chemistry"),
        ("有机化学", "Organic Chemistry"),
        ("分析化学", "Analytical Chemistry"),
        ("物理化学", "Physical Chemistry"),
        ("高分子材料", "Polymer Materials"),
        ("化工原理", "Chemical Engineering Principles"),
        ("结构化学", "Structural Chemistry"),
        ("化学实验", "Chemistry Laboratory"),
    ),
    (
        ("古代汉语", "Classical Chinese"),
        ("现代汉语", "Modern Chinese"),
        ("中国古代文学", "Ancient Chinese Literature"),
        ("外国文学", "World Literature"),
        ("写作基础", "Basics of Writing"),
        ("新闻采访", "News Reporting"),
        ("传播学", "Communication Studies"),
        ("文学概论", "Introduction to Literature"),
    ),
)

FAMILY = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕"
GIVEN_MALE = (
    "伟",
    "强",
    "磊",
    "洋",
    "勇",
    "军",
    "杰",
    "涛",
    "超",
    "明",
    "浩然",
    "子轩",
    "宇航",
    "俊杰",
    "志强",
    "博文",
)
GIVEN_FEMALE = (
    "芳",
    "娜",
    "静",
    "敏",
    "丽",
    "艳",
    "霞",
    "婷",
    "雪",
    "欣怡",
    "梓涵",
    "诗琪",
    "雨欣",
    "佳怡",
    "思琪",
    "晓燕",
)
TITLES = (("教授", "professor"), ("副教授", "associate professor"), ("讲师", "lecturer"))

ATTENDANCE = (("出勤", "present"), ("缺勤", "absent"), ("迟到", "late"), ("请假", "leave"))
SCHOLARSHIPS = (
    ("国家奖学金", "National Scholarship", 10_000),
    ("国家励志奖学金", "National Encouragement Scholarship", 6_000),
    ("一等学业奖学金", "First-Class Academic Scholarship", 3_000),
    ("二等学业奖学金", "Second-Class Academic Scholarship", 2_000),
    ("三等学业奖学金", "Third-Class Academic Scholarship", 1_000),
    ("科研创新奖学金", "Research and Innovation Scholarship", 4_000),
    ("社会实践奖学金", "Social Practice Scholarship", 1_500),
    ("文体活动奖学金", "Arts and Sports Scholarship", 1_500),
)
"""Names, and yuan for one award."""
DORMITORIES = (
    ("梅园", "Plum Hall", "女"),
    ("兰园", "Orchid Hall", "女"),
    ("荷园", "Lotus Hall", "女"),
    ("松园", "Pine Hall", "男"),
    ("竹园", "Bamboo Hall", "男"),
    ("柏园", "Cypress Hall", "男"),
)
"""Names, and who lives there."""
