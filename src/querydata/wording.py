"""The wording: a short answer in the asker's language that says nothing the table does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from querydata.chart import Chart
from querydata.model.port import Language

_TEXTS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "none": "没有符合条件的数据。",
        "one": "{facts}。",
        "many": "共 {count} 行。",
        "drawn": "共 {count} 行。{y}最高的是{high}（{high_value}），最低的是{low}（{low_value}）。",
        "level": "共 {count} 行，{y}都是 {high_value}。",
        "truncated": "结果较多，只显示前 {count} 行。",
        "pair": "{name}：{value}",
        "between": "，",
    },
    "en": {
        "none": "No rows match.",
        "one": "{facts}.",
        "many": "{count} rows.",
        "drawn": "{count} rows. {high} has the highest {y} ({high_value}), {low} the lowest ({low_value}).",
        "level": "{count} rows; {y} is {high_value} for each.",
        "truncated": "There are more; only the first {count} rows are shown.",
        "pair": "{name}: {value}",
        "between": ", ",
    },
}

_REASONS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "model-rate-limited": "模型繁忙，请稍后重试。",
        "model-unavailable": "暂时无法连接模型服务。",
        "model-timeout": "模型没有在规定时间内答复。",
        "model-cut": "模型的答复中途断开，不完整。",
        "model-malformed": "模型的答复格式不正确，无法使用。",
        "model-too-long": "模型的答复过长，没有写完。",
        "model-filtered": "模型服务方拦截了这次答复。",
        "model-refused": "模型服务拒绝了请求，请检查模型设置。",
        "statement-timeout": "查询超时，已停止。请缩小范围后再问。",
        "interrupted": "查询被中断。",
        "not-registered": "你的账号没有登记可以查询的范围（角色，以及所属院系或本人），请联系管理员。",
        "not-permitted": "你的账号无权查询这项内容：{detail}。",
        "guard": "生成的 SQL 没有通过安全检查：{detail}",
        "query": "生成的 SQL 执行失败：{detail}",
        "attempts": "（已尝试 {count} 次）",
    },
    "en": {
        "model-rate-limited": "The model is busy; please try again later.",
        "model-unavailable": "The model cannot be reached at the moment.",
        "model-timeout": "The model did not answer in time.",
        "model-cut": "The model's reply broke off before it was complete.",
        "model-malformed": "The model's reply was not in the agreed form and cannot be used.",
        "model-too-long": "The model's reply was too long and was not finished.",
        "model-filtered": "The model's provider withheld the reply.",
        "model-refused": "The model's service refused the request; please check the model settings.",
        "statement-timeout": "The query took too long and was stopped. Please ask about less.",
        "interrupted": "The query was interrupted.",
        "not-registered": "It is not registered what your account may ask about (a role, and whose data): "
        "please ask the administrator.",
        "not-permitted": "Your account may not ask about this: {detail}.",
        "guard": "The SQL did not pass the safety check: {detail}",
        "query": "The SQL could not be run: {detail}",
        "attempts": " ({count} attempts)",
    },
}


def answer_text(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, chart: Chart | None, truncated: bool, language: Language
) -> str:
    """The answer in one or two sentences."""
    texts = _TEXTS[language]
    if not rows:
        return texts["none"]
    if truncated:
        return texts["truncated"].format(count=len(rows))
    if len(rows) == 1:
        pairs = (texts["pair"].format(name=name, value=shown(rows[0][i])) for i, name in enumerate(columns))
        return texts["one"].format(facts=texts["between"].join(pairs))
    if chart is None:
        return texts["many"].format(count=len(rows))
    x, y = list(columns).index(chart["x"]), list(columns).index(chart["y"])
    ranked = sorted((row for row in rows if row[y] is not None), key=lambda row: row[y])
    low, high = ranked[0], ranked[-1]
    return texts["level" if low[y] == high[y] else "drawn"].format(
        count=len(rows),
        y=chart["y"],
        high=shown(high[x]),
        high_value=shown(high[y]),
        low=shown(low[x]),
        low_value=shown(low[y]),
    )


def reason(code: str, *, language: Language, kind: str = "query", detail: str = "", attempts: int = 1) -> str:
    """Why there is no answer, in plain words; `detail` is shown where `code` has no words of its own."""
    texts = _REASONS[language]
    text = texts[code if code in texts else kind].format(detail=detail)
    return text + (texts["attempts"].format(count=attempts) if attempts > 1 else "")


def shown(value: Any) -> str:
    """A value in words: no noise behind the point, a dash for nothing."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
