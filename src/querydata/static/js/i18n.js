// Words of the page in Chinese and English, by the browser's language, with a switch.

const ZH = {
  tagline: "用一句话查询校园数据", name: "账号", password: "密码", signIn: "登录", signOut: "退出",
  demoHint: "演示账号在启动服务的终端中列出。", otherLanguage: "English",
  wrongCredentials: "账号或密码不正确。", tooManyAttempts: "尝试次数过多，请在 {seconds} 秒后再试。",
  newConversation: "新会话", conversations: "会话列表", close: "关闭", untitled: "未命名会话", nothingYet: "还没有会话",
  welcome: "想查询什么？", welcomeMore: "直接用中文或英文提问。系统会先说明它如何理解问题，再给出表格、图表和所用的 SQL。",
  countBy: "按{column}统计",
  earlier: "查看更早的提问", noLongerKept: "（内容已过保留期）",
  ask: "输入你的问题", send: "发送", composerHint: "Enter 发送，Shift + Enter 换行",
  stop: "停止", retry: "重试", discard: "放弃", showSql: "查看 SQL", reading: "理解为", chart: "图表",
  steps: "{count} 个步骤", stepsLoad: "查看步骤", rows: "共 {count} 行", row: "共 1 行", showAll: "显示全部 {count} 行", emptyTable: "没有符合条件的数据",
  sending: "正在发送…", waitingNetwork: "暂时无法连接服务器，正在重试，问题已保存在本机。", waitingServer: "服务器忙，稍后自动重试。",
  queued: "排队中，前面还有 {count} 个问题", queuedNext: "排队中，即将开始", running: "正在查询…",
  failed: "查询失败", stopped: "已停止", abandoned: "结果不可用", refusedTag: "不在可回答的范围内",
  abandonedMore: "处理这个问题的进程意外中断，无法得知结果。可以重新提问。", refusedSend: "未能提交",
  "stopped.cancelled": "已按你的要求停止", "stopped.superseded": "已被更新的问题取代", "stopped.shutdown": "服务重启，查询已停止",
  "stopped.run_limit": "超过运行时限，已停止", "stopped.lease_lost": "处理权已转移，已停止", "stopped.revoked": "已被管理员停止",
  reconnecting: "连接已断开，正在重新连接…", signedOut: "登录已过期，请重新登录。", gone: "没有这个会话，或者它不属于你。",
  loadFailed: "无法读取会话，正在重试…", seconds: "{seconds} 秒", instant: "不到 0.1 秒", runningMark: "正在查询",
  "role.admin": "管理员", "role.dean": "院长", "role.student": "学生",
  "step.retrieve": "查找相关的表与业务术语", "step.model": "理解问题并生成 SQL", "step.guard": "安全检查", "step.run": "执行查询",
  "step.word": "整理回答", "detail.rows": "{count} 行", "detail.truncated": "前 {count} 行", attempt: "第 {count} 次尝试", firstRows: "前 {count} 行",
  "problem.conversation-busy": "这个会话正在回答另一个问题。", "problem.limit-reached": "排队的问题太多，请稍后再试。",
  "problem.idempotency-key-reused": "这个请求编号已用于另一个问题。", "problem.too-large": "问题太长。",
  "problem.invalid-payload": "问题不能为空，也不能过长。", "problem.result-expired": "结果已过保留期。",
  "problem.not-found": "没有这个会话，或者它不属于你。",
};

const EN = {
  tagline: "Ask your campus data in plain words", name: "Account", password: "Password", signIn: "Sign in", signOut: "Sign out",
  demoHint: "The demo accounts are listed in the terminal that started the service.", otherLanguage: "中文",
  wrongCredentials: "Wrong account or password.", tooManyAttempts: "Too many attempts. Try again in {seconds} s.",
  newConversation: "New conversation", conversations: "Conversations", close: "Close", untitled: "Untitled", nothingYet: "No conversations yet",
  welcome: "What would you like to know?",
  welcomeMore: "Ask in English or Chinese. You see how the question was read, then a table, a chart and the SQL that was run.",
  countBy: "Count by {column}",
  earlier: "Show earlier questions", noLongerKept: "(no longer kept)",
  ask: "Ask a question", send: "Send",
  composerHint: "Enter sends, Shift + Enter starts a new line",
  stop: "Stop", retry: "Retry", discard: "Discard", showSql: "Show SQL", reading: "Read as", chart: "Chart",
  steps: "{count} steps", stepsLoad: "Show steps", rows: "{count} rows", row: "1 row", showAll: "Show all {count} rows", emptyTable: "No rows match",
  sending: "Sending…", waitingNetwork: "The server cannot be reached. Trying again; your question is kept in this browser.",
  waitingServer: "The server is busy. Trying again shortly.",
  queued: "Queued, {count} before this one", queuedNext: "Queued, about to start", running: "Working…",
  failed: "The query failed", stopped: "Stopped", abandoned: "Result unavailable", refusedTag: "Outside what can be answered",
  abandonedMore: "The process that worked on this question ended unexpectedly; its result is not known. You can ask again.",
  refusedSend: "Not submitted",
  "stopped.cancelled": "Stopped, as you asked", "stopped.superseded": "Replaced by a newer question",
  "stopped.shutdown": "The service restarted; the query was stopped", "stopped.run_limit": "Stopped at the run limit",
  "stopped.lease_lost": "Stopped: another process took over", "stopped.revoked": "Stopped by an operator",
  reconnecting: "Connection lost. Reconnecting…", signedOut: "Your sign-in has ended. Sign in again.",
  gone: "There is no such conversation, or it is not yours.",
  loadFailed: "The conversation cannot be loaded. Trying again…", seconds: "{seconds} s", instant: "under 0.1 s", runningMark: "Working",
  "role.admin": "Administrator", "role.dean": "Dean", "role.student": "Student",
  "step.retrieve": "Finding tables and terms", "step.model": "Reading the question, writing SQL", "step.guard": "Checking the SQL",
  "step.run": "Running the query", "step.word": "Wording the answer", "detail.rows": "{count} rows", "detail.truncated": "first {count} rows",
  attempt: "attempt {count}", firstRows: "First {count} rows",
  "problem.conversation-busy": "This conversation is answering another question.",
  "problem.limit-reached": "Too many questions are waiting. Try again later.",
  "problem.idempotency-key-reused": "This request's key was used for another question.", "problem.too-large": "The question is too long.",
  "problem.invalid-payload": "The question must not be empty or too long.", "problem.result-expired": "The result is no longer kept.",
  "problem.not-found": "There is no such conversation, or it is not yours.",
};

export const EXAMPLES = {
  zh: ["查询当前仍有挂科的学生", "张伟的绩点是多少", "哪门课挂科率最高", "本学期各院系的平均成绩"],
  en: ["Which students currently have failed courses?", "Average grade of each department this term",
    "Which course has the highest failure rate?", "How many students are in each department?"],
};

const STORED = "querydata:language";
let current = stored() ?? ((navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en");

function stored() {
  try {
    const value = localStorage.getItem(STORED);
    return value === "zh" || value === "en" ? value : null;
  } catch {
    return null;
  }
}

export const language = () => current;

export function switchLanguage() {
  current = current === "zh" ? "en" : "zh";
  try {
    localStorage.setItem(STORED, current);
  } catch {
    // Private windows may refuse: the choice lasts for this page.
  }
}

/** The words for `key`; `fallback` (or the key) if there are none. */
export function t(key, values = {}, fallback = key) {
  const text = (current === "zh" ? ZH : EN)[key] ?? fallback;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Put words into everything below `root` that declares them. */
export function translate(root = document) {
  document.documentElement.lang = current === "zh" ? "zh-CN" : "en";
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.dataset.tLabel));
  for (const element of root.querySelectorAll("[data-t-placeholder]")) element.placeholder = t(element.dataset.tPlaceholder);
}
