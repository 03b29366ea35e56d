// The parts of an answer: what is known of it while it is being made, and how each part looks.

import { chart } from "./chart.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { table } from "./table.js";

const NONE = [];
const FEWEST_LISTED = 8;
const MOST_KINDS = 15;

/** What can be shown of a turn now: the result once there is one, the events' parts until then. */
export function partsOf(turn) {
  const { result, data } = turn;
  if (result && typeof result === "object") return result;
  const rows = data.table ?? {};
  return {
    text: typeof result === "string" ? result : turn.text,
    reading: data.reading ?? "",
    sql: data.sql ?? "",
    columns: rows.columns ?? NONE,
    rows: rows.rows ?? NONE,
    chart: data.chart ?? null,
    truncated: rows.truncated ?? false,
    refused: false,
  };
}

export const reading = (text) => h("p", { class: "reading" }, h("span", { class: "label" }, t("reading")), text);

export const wording = (text, refused) =>
  h("div", { class: refused ? "wording refused" : "wording" },
    refused && h("span", { class: "tag" }, t("refusedTag")), h("p", {}, text));

export const sql = (text) => h("details", { class: "sql" }, h("summary", {}, t("showSql")), h("pre", {}, h("code", {}, text)));

export function tableOf({ columns, rows, truncated }) {
  return columns.length > 0 ? table(columns, rows, { truncated }) : null;
}

export function chartOf({ chart: wanted, columns, rows, truncated }) {
  const [x, y] = [columns.indexOf(wanted?.x), columns.indexOf(wanted?.y)];
  if (x >= 0 && y >= 0) {
    const points = rows.map((row) => ({ label: String(row[x] ?? "–"), value: row[y] }));
    return figure(chart(wanted.kind, points, wanted.y), wanted.y);
  }
  // A list of many things has no numbers to draw, but how many there are of each kind. Half a list would mislead.
  const kind = truncated || rows.length < FEWEST_LISTED ? -1 : kindOf(columns, rows);
  if (kind < 0) return null;
  const title = t("countBy", { column: columns[kind] });
  const points = [...counted(rows, kind)].map(([label, value]) => ({ label, value })).sort((a, b) => b.value - a.value);
  return figure(chart("bar", points, title), title);
}

const figure = (picture, title) => picture && h("figure", { class: "chart" }, h("figcaption", {}, title), picture);

/** The first column of words that sorts the rows into a few kinds. */
function kindOf(columns, rows) {
  return columns.findIndex((_, index) => {
    const kinds = rows.every((row) => typeof row[index] === "string") ? counted(rows, index).size : 0;
    return kinds >= 2 && kinds <= MOST_KINDS && kinds * 3 <= rows.length;
  });
}

function counted(rows, column) {
  const counts = new Map();
  for (const row of rows) counts.set(row[column], (counts.get(row[column]) ?? 0) + 1);
  return counts;
}
