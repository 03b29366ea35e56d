// What is known about a conversation's turns: the history and the stream, folded into one list without gaps or repeats.

const FINAL = new Set(["succeeded", "failed", "stopped", "abandoned"]);

/** One question and what became of it. */
export class Turn {
  constructor(id) {
    this.id = id;
    this.key = null;
    this.sequence = Number.MAX_SAFE_INTEGER;
    this.epoch = null;
    this.status = "queued";
    this.reason = null;
    this.question = null;
    this.result = null;
    this.error = null;
    this.seconds = null;
    this.last = 0;
    this.frames = []; // every numbered frame so far: what a tab that came later is sent
    this.clear();
  }

  get final() {
    return FINAL.has(this.status);
  }

  clear() {
    this.text = "";
    this.steps = new Map();
    this.data = {};
  }

  /** Take what the history says. A page that has seen the end knows better than a history read before it. */
  learn(item) {
    this.key = item.key;
    this.sequence = item.sequence ?? this.sequence;
    this.question = item.payload?.text ?? this.question ?? "";
    this.epoch = item.epoch ?? this.epoch;
    if (item.started_at && item.ended_at) this.seconds = Math.max(0, item.ended_at - item.started_at);
    if (this.final) return;
    // A history that was read before the turn started must not put it back into the queue.
    if (item.status !== "queued" || this.last === 0) this.status = item.status;
    this.reason = item.reason ?? this.reason;
    this.result = item.result ?? this.result;
    this.error = item.error ?? this.error;
    if (this.final) {
      this.last = Math.max(this.last, item.last_event ?? 0);
      this.frames = [];
    }
  }

  /** What led to an end that is known already. */
  replay(kind, data) {
    const { status } = this;
    this.apply(kind, data);
    this.status = status;
  }

  apply(kind, data) {
    switch (kind) {
      case "queued":
        if (!this.final) this.status = "queued";
        break;
      case "started":
        this.status = "running";
        break;
      case "restarted":
        this.status = "running";
        this.clear();
        break;
      case "text":
        this.text += data.delta;
        break;
      case "step":
        this.steps.set(stepKey(data), data);
        break;
      case "data":
        this.data = { ...this.data, [data.name]: data.value };
        break;
      case "snapshot":
        this.clear();
        this.text = data.text ?? "";
        for (const step of data.steps ?? []) this.steps.set(stepKey(step), step);
        this.data = { ...data.data };
        break;
      case "succeeded":
        this.status = kind;
        this.result = data.result;
        break;
      case "failed":
        this.status = kind;
        this.error = data;
        break;
      case "stopped":
        this.status = kind;
        this.reason = data.reason;
        break;
      case "abandoned":
        this.status = kind;
        break;
      default: // kinds of a newer server are no harm to an older page
    }
  }
}

// A repair goes through the same steps again; what failed before it stays to be seen.
const stepKey = ({ name, attempt = 1 }) => `${attempt} ${name}`;

const numbers = (id) => id.split("-").map(Number);

/** The turns of one conversation. */
export class Turns {
  #turns = new Map();

  /** Take a history page; nothing that is known is lost. */
  learn(items) {
    for (const item of items) this.#turn(item.turn).learn(item);
  }

  /** Those that the history has named, in the order in which they were asked. */
  known() {
    return this.list().filter((turn) => turn.question !== null);
  }

  list() {
    return [...this.#turns.values()].sort((a, b) => a.sequence - b.sequence);
  }

  get = (id) => this.#turns.get(id);

  unfinished() {
    return this.list().filter((turn) => !turn.final);
  }

  /** How many go before a queued turn. */
  ahead(turn) {
    return this.unfinished().filter((other) => other.sequence < turn.sequence).length;
  }

  /**
   * Apply one frame {id, kind, turn, data}. Answers "applied", "known" (seen before) or "gap" (frames before it are
   * missing: not applied).
   */
  apply(frame) {
    const turn = this.#turn(frame.turn);
    if (frame.id !== null) {
      const [epoch, seq] = numbers(frame.id);
      if (seq <= turn.last) return "known";
      if (seq !== turn.last + 1 && frame.kind !== "snapshot") return "gap";
      turn.epoch = epoch;
      turn.last = seq;
      turn.frames.push(frame);
    } else if (turn.final) {
      return "known";
    }
    turn.apply(frame.kind, frame.data);
    if (turn.final) turn.frames = [];
    return "applied";
  }

  /** The server's own stream leaves nothing out: what comes next from it fits, whatever was seen before. */
  expect(frame) {
    if (frame.id === null) return;
    const turn = this.#turn(frame.turn);
    turn.last = Math.max(turn.last, numbers(frame.id)[1] - 1);
  }

  /** After which event the conversation's stream is needed: before the first that is missing, of the oldest open turn. */
  cursor() {
    const numbered = [...this.#turns.values()].filter((turn) => turn.epoch !== null).sort((a, b) => a.epoch - b.epoch);
    const open = numbered.find((turn) => !turn.final);
    const turn = open ?? numbered.at(-1);
    return turn ? `${turn.epoch}-${turn.last}` : "0";
  }

  /** The frames of open turns, for a tab that came later. */
  frames() {
    return this.list().filter((turn) => !turn.final).flatMap((turn) => turn.frames);
  }

  #turn(id) {
    let turn = this.#turns.get(id);
    if (!turn) this.#turns.set(id, (turn = new Turn(id)));
    return turn;
  }
}
