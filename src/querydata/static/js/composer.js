// Where a question is written. Enter sends it, unless Enter only ends the choice of a Chinese word.

import { byId } from "./dom.js";

const TALLEST = 160;

/** Calls `onAsk(text)` for every question. Answers what sets the focus. */
export function composer(onAsk) {
  const form = byId("composer");
  const field = byId("question");
  const send = form.querySelector("button");

  const fit = () => {
    send.disabled = field.value.trim() === "";
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, TALLEST)}px`;
  };
  const ask = () => {
    const text = field.value.trim();
    if (text === "") return;
    field.value = "";
    fit();
    onAsk(text);
  };

  field.addEventListener("input", fit);
  field.addEventListener("keydown", (event) => {
    // Some browsers end the composition before this event and say so only by key code 229.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    ask();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  return { focus: () => matchMedia("(pointer: fine)").matches && field.focus() };
}
