// A simple chart as SVG: bars that lie down (labels stay readable on a phone), or a line.

import { svg } from "./dom.js";
import { formatted } from "./table.js";

const WIDEST = 720;
const AROUND = 66; // what a phone's page leaves at the sides of a chart
const MOST_BARS = 20;
const MOST_POINTS = 200;
const ROW = 30;

/** The chart of `points` ({label, value}), as `kind` says: "line", or bars. Null if there is nothing to draw. */
export function chart(kind, points, title) {
  const drawn = points.filter(({ value }) => typeof value === "number" && Number.isFinite(value));
  if (drawn.length === 0) return null;
  return kind === "line" && drawn.length > 1 ? line(drawn.slice(0, MOST_POINTS), title) : bars(drawn.slice(0, MOST_BARS), title);
}

// Drawn for the width there is, so that letters keep their size.
const roomFor = () => Math.max(240, Math.min(WIDEST, document.documentElement.clientWidth - AROUND));

function bars(points, title) {
  const room = roomFor();
  const labelWidth = Math.min(room * 0.48, 16 + Math.max(...points.map(({ label }) => width(label))));
  const valueWidth = 16 + Math.max(...points.map(({ value }) => width(formatted(value))));
  const [low, high] = [Math.min(0, ...points.map(({ value }) => value)), Math.max(0, ...points.map(({ value }) => value))];
  const scale = (room - labelWidth - valueWidth) / (high - low || 1);
  const zero = labelWidth - low * scale;
  const rows = points.map(({ label, value }, index) => {
    const y = index * ROW;
    const length = Math.max(1, Math.abs(value) * scale);
    const x = value < 0 ? zero - length : zero;
    return svg("g", { class: "bar" },
      svg("title", {}, `${label}: ${formatted(value)}`),
      svg("text", { x: labelWidth - 10, y: y + 20, "text-anchor": "end" }, shortened(label, labelWidth - 16)),
      svg("rect", { x, y: y + 5, width: length, height: ROW - 10, rx: 3 }),
      svg("text", { class: "value", x: x + length + 8, y: y + 20 }, formatted(value)));
  });
  return svg("svg", { viewBox: `0 0 ${room} ${points.length * ROW}`, role: "img", "aria-label": title }, rows);
}

function line(points, title) {
  const room = roomFor();
  const [height, left, bottom, top] = [260, 52, 34, 14];
  const values = points.map(({ value }) => value);
  const ticks = ticksOf(Math.min(...values), Math.max(...values));
  const [low, high] = [ticks[0], ticks.at(-1)];
  const x = (index) => left + (index * (room - left - 28)) / (points.length - 1);
  const y = (value) => height - bottom - ((value - low) * (height - bottom - top)) / (high - low);
  const every = Math.ceil(points.length / Math.max(2, Math.floor(room / (24 + Math.max(...points.map((p) => width(p.label)))))));
  return svg("svg", { viewBox: `0 0 ${room} ${height}`, role: "img", "aria-label": title },
    ticks.map((tick) => svg("g", { class: "tick" },
      svg("line", { x1: left, x2: room - 8, y1: y(tick), y2: y(tick) }),
      svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, formatted(tick)))),
    svg("polyline", { class: "line", points: points.map(({ value }, index) => `${x(index)},${y(value)}`).join(" ") }),
    points.map(({ label, value }, index) => svg("g", { class: "point" },
      svg("title", {}, `${label}: ${formatted(value)}`),
      svg("circle", { cx: x(index), cy: y(value), r: points.length > 40 ? 2 : 4 }),
      index % every === 0 && svg("text", { x: x(index), y: height - 10, "text-anchor": "middle" }, label))));
}

function ticksOf(low, high) {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const first = Math.floor(low / step) * step;
  const count = Math.max(1, Math.ceil((high - first) / step));
  return Array.from({ length: count + 1 }, (_, index) => first + index * step);
}

// A guess is enough: Chinese characters are about twice as wide as Latin ones.
const width = (text) => [...text].reduce((sum, letter) => sum + (letter.codePointAt(0) > 0x2e7f ? 14 : 7.6), 0);

function shortened(text, room) {
  let short = text;
  while (short.length > 1 && width(`${short}…`) > room) short = short.slice(0, -1);
  return width(text) <= room ? text : `${short}…`;
}
