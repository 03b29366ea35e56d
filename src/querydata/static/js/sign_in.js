// The form that signs somebody in, without leaving the page.

import { Problem } from "./api.js";
import { byId } from "./dom.js";
import { t } from "./i18n.js";

/** Calls `onSignedIn()`. */
export function signInForm(onSignedIn) {
  const form = byId("sign-in-form");
  const shown = byId("sign-in-error");
  const say = (text) => {
    shown.textContent = text;
    shown.hidden = text === "";
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button[type=submit]");
    button.disabled = true;
    say("");
    try {
      const headers = { Accept: "application/json" };
      const response = await fetch("/sign-in", { method: "POST", headers, body: new URLSearchParams(new FormData(form)) });
      if (!response.ok) throw new Problem(response, await response.json().catch(() => ({})));
      form.reset();
      await onSignedIn();
    } catch (error) {
      if (error.status === 401) say(t("wrongCredentials"));
      else if (error.status === 429) say(t("tooManyAttempts", { seconds: error.retryAfter }));
      else say(error instanceof Problem ? error.detail : t("loadFailed"));
    } finally {
      button.disabled = false;
    }
  });

  return {
    show(message) {
      say(message || "");
      form.elements.name.focus();
    },
  };
}
