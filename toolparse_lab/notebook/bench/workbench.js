// The workbench around a parse view: a text that can be changed, and what becomes of it. Text only
// ever goes in through textContent; nothing here talks to a network.

const WAIT = 60; // milliseconds behind the last key before the text is read again
const NO_ANSWER = 4000; // milliseconds after which a kernel counts as gone
const STAGE_OF = { raw: "raw", segments: "raw", repaired: "repaired", decoded: "decoded", coerced: "coerced", validated: "raw" };
const EVENT_WORDS = {
  TextDelta: "text",
  ReasoningDelta: "reasoning",
  Markup: "markup",
  CallStart: "a call begins",
  CallDelta: "body",
  CallEnd: "the call ends",
  Retract: "taken back",
  Recovered: "a call outside its format",
  Withdrawn: "calls withdrawn",
};

/** A text with its invisible characters shown, as the kernel shows them. */
function plain(text) {
  return text.replace(
    // eslint-disable-next-line no-control-regex
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu,
    (c) => `⟨${c === "\u001b" ? "ESC" : c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** Where two texts differ, as [start, end of the old, end of the new] in code units; null where they do not. */
function difference(before, after) {
  if (before === after) return null;
  let start = 0;
  const least = Math.min(before.length, after.length);
  while (start < least && before[start] === after[start]) start++;
  let tail = 0;
  while (tail < least - start && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  return [start, before.length - tail, after.length - tail];
}

function short(text, most = 60) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** What a replay has come to after chunk `step`: where text, thought and calls are, and what is held back. */
function replayed(timeline, step) {
  const pieces = [];
  for (let i = 0; i <= step; i++) {
    for (const [kind, start, end, words] of timeline.events[i]) {
      if (kind === "Retract") {
        while (pieces.length && pieces[pieces.length - 1].end > start) {
          const last = pieces[pieces.length - 1];
          if (last.start >= start) pieces.pop();
          else last.end = start;
        }
      } else if (end > start) {
        const last = pieces[pieces.length - 1];
        // The body of a call comes in many pieces, and is drawn as one.
        if (last && last.kind === kind && last.end === start && kind !== "CallEnd") last.end = end;
        else pieces.push({ kind, start, end });
      }
    }
  }
  return { pieces, fed: timeline.ends[step], settled: timeline.settled[step] };
}

function cells(texts) {
  return texts.map((text) => make("td", "", text));
}

function table(words, rows) {
  return make("table", "tb-table", [make("tr", "", heads(words)), ...rows]);
}

class Bench {
  /** send: takes a message for the kernel; null where there is none, as on a page from disk. */
  constructor(root, state, send) {
    this.state = state;
    this.send = send;
    this.serial = 0;
    this.shown = 0;
    this.undos = [];
    this.uid = `tb${Math.random().toString(36).slice(2, 9)}`;
    this.root = make("div", "tp tb", undefined, { "data-lm-suppress-shortcuts": "true", role: "region", "aria-label": "Workbench" });
    root.replaceChildren(this.root);
    this.build();
    this.take(state.view, true);
    // A page that is loaded again has what was changed, and can go back to what was recorded.
    this.first = this.valuesOf(state.recorded);
    this.root.addEventListener("keydown", (event) => this.onKey(event), true);
  }

  // what is there

  build() {
    const change = () => this.edit();
    const labelled = [];
    this.pickers = {};
    for (const [name, label] of [["protocol", "protocol"], ["coerce", "policy"], ["reasoning", "reasoning"]]) {
      this.pickers[name] = make("select", "tb-pick", undefined, { "aria-label": label, change });
      labelled.push(make("label", "tb-label", [label, this.pickers[name]]));
    }
    this.switches = {};
    for (const [name, title] of [["repair", "read damaged bodies"], ["recover", "read calls outside their format"]]) {
      this.switches[name] = make("input", "", undefined, { type: "checkbox", change });
      labelled.push(make("label", "tb-label", [this.switches[name], name], { title }));
    }
    this.undo = this.button("Undo", () => this.back(), "Ctrl+Z outside the text");
    this.reset = this.button("Original", () => this.original(), "as it was recorded");
    this.bar = make("div", "tb-bar", [...labelled, this.undo, this.reset], { role: "toolbar", "aria-label": "How the text is read" });

    this.place = make("span", "tb-place", "", { role: "status" });
    const steps = [this.button("‹ p", () => this.go(-1), "the one before: key p", "previous"), this.place, this.button("n ›", () => this.go(1), "the next one: key n", "next")];
    this.walk = make("span", "tb-walk", steps);

    this.title = make("div", "tb-title");
    this.sentence = make("p", "tb-sentence", "", { role: "status", "aria-live": "polite" });
    this.fault = make("p", "tb-fault", "", { role: "alert", hidden: "" });

    const input = () => this.later();
    this.text = make("textarea", "tb-text", undefined, { "aria-label": "Raw text", spellcheck: "false", rows: "6", autocomplete: "off", input });
    this.changed = make("p", "tb-changed", "", { role: "status" });
    this.tools = make("textarea", "tb-text tb-tools", undefined, { "aria-label": "Tools as JSON", spellcheck: "false", rows: "10", input });
    this.toolBox = this.fold("Tools", this.tools);
    const left = make("label", "tb-field", [this.send ? "Raw text: change it" : "Raw text", this.text, this.changed]);
    const texts = make("div", "tb-texts", [left, this.toolBox]);

    this.pipeline = make("div", "tb-stages", undefined, { role: "tablist", "aria-label": "Pipeline" });
    this.lines = make("div", "tb-lines", undefined, { role: "tabpanel", id: `${this.uid}-lines`, tabindex: "0" });
    this.readings = make("div", "tb-readings");
    this.wanted = make("div", "tb-wanted");
    this.view = make("div", "tb-view");
    this.stream = this.fold("Stream: replay it chunk by chunk", this.streamPanel(), () => this.askTimeline());
    this.compared = make("div", "tb-compared");
    this.compare = this.fold("All protocols side by side", this.compared, () => this.ask("compare"));
    this.other = make("select", "tb-pick", undefined, { "aria-label": "the other reading", change: () => this.askBeside() });
    this.differing = make("div", "tb-compared");
    this.beside = this.fold("Another policy or protocol, value by value", make("div", "", [this.other, this.differing]), () => this.askBeside());
    this.exchange = make("div", "tb-exchange");
    this.keep = this.fold("Keep it", this.keepPanel());
    const keys = keyLine("tp-keys tb-keys", [["e", "edit"], ["Esc", "leave the text"], ["1–6", "stage"], ["n p", "next, previous"], ["/", "search"], ["← →", "chunk"]]);
    this.root.append(this.bar, this.title, this.sentence, this.fault, texts, this.readings, this.wanted, this.pipeline, this.lines, this.view, this.stream, this.compare, this.beside, this.exchange, this.keep, keys);
  }

  button(text, act, title, label) {
    return makeButton("tb-button", text, act, { title, ...(label ? { "aria-label": label } : {}) });
  }

  fold(title, content, onOpen = () => {}) {
    const box = make("details", "tb-fold", [make("summary", "", title), content], { toggle: () => box.open && onOpen() });
    return box;
  }

  streamPanel() {
    this.size = make("input", "tb-size", undefined, {
      type: "number",
      min: "0",
      max: "100000",
      value: "0",
      "aria-label": "Characters a chunk, 0 as recorded",
      change: () => this.askTimeline(true),
    });
    const scrub = () => this.scrub(Number(this.slider.value));
    this.slider = make("input", "tb-slider", undefined, { type: "range", min: "0", max: "0", value: "0", role: "slider", "aria-label": "Chunk", input: scrub });
    this.at = make("span", "tb-at", "", { role: "status" });
    const size = make("label", "tb-label", ["characters a chunk (0: as recorded)", this.size]);
    this.fed = make("div", "tb-fed", undefined, { "aria-label": "The text so far" });
    this.events = make("ol", "tb-events", undefined, { "aria-label": "Events of this chunk" });
    const key = make("div", "tb-key", "plain: settled · framed: held back · pale: not there yet");
    return make("div", "tb-stream", [make("div", "tb-controls", [size, this.slider, this.at]), this.fed, key, this.events]);
  }

  keepPanel() {
    this.kept = make("textarea", "tb-text", undefined, { readonly: "", rows: "8", "aria-label": "Snippet" });
    const kinds = [["pytest", "as a pytest case"], ["python", "as Python"], ["curl", "the request as curl"]];
    const buttons = kinds.map(([kind, words]) => this.button(words, () => this.ask("keep", { as: kind }), `copy ${words}`));
    return make("div", "tb-keep", [make("div", "tb-controls", buttons), this.kept]);
  }

  // what the kernel says

  /** Show a view; `whole` where it is of another subject, so that the text is that one's. */
  take(view, whole) {
    this.current = view;
    if (whole) {
      this.first = this.valuesOf(view);
      this.undos = [];
      this.text.value = view.raw;
      this.tools.value = view.tools;
    }
    const values = this.valuesOf(view);
    for (const [name, picker] of Object.entries(this.pickers)) this.fill(picker, this.state.choices[name], values[name]);
    for (const [name, input] of Object.entries(this.switches)) input.checked = values[name];
    this.settled = this.values();
    this.sentence.textContent = view.sentence;
    this.title.replaceChildren(...(view.title ? [make("strong", "", view.title)] : []), ...(view.outcome ? [make("span", "tb-outcome", view.outcome)] : []));
    this.title.hidden = !view.title && !view.outcome;
    if (view.count > 1) {
      this.place.textContent = `${view.index + 1} of ${view.count}`;
      this.bar.append(this.walk);
    }
    this.complain("");
    this.toolBox.firstChild.textContent = `Tools (${JSON.parse(view.tools).length})`;
    this.drawPipeline();
    this.drawReadings();
    this.drawWanted();
    this.drawExchange();
    this.inner = mount(this.view, view.payload, { digits: false, stage: STAGE_OF[this.stage] });
    this.markChanges();
    this.timeline = view.timeline ?? null;
    if (this.stream.open) this.askTimeline(true);
    if (this.compare.open) this.ask("compare");
    if (this.beside.open) this.askBeside();
    this.kept.value = "";
    if (!this.send) this.freeze();
  }

  fill(picker, names, chosen) {
    const all = names.includes(chosen) ? names : [chosen, ...names];
    if (picker.children.length !== all.length) {
      picker.replaceChildren(...all.map((name) => make("option", "", name, { value: name })));
    }
    picker.value = chosen;
  }

  /** Without a kernel everything can be looked at and nothing changed. */
  freeze() {
    for (const element of [this.text, this.tools, ...Object.values(this.pickers), ...Object.values(this.switches), this.undo, this.reset, this.size]) element.disabled = true;
    this.text.disabled = false;
    this.text.readOnly = true;
    for (const fold of [this.compare, this.beside, this.keep]) fold.hidden = true;
  }

  hear(message) {
    const { kind, serial, error } = message;
    if (serial < this.shown) return;
    this.shown = serial;
    clearTimeout(this.alone);
    if (error !== undefined) {
      this.complain(error);
      return;
    }
    if (kind === "parse") this.take(message.view, false);
    if (kind === "go") this.take(message.view, true);
    if (kind === "timeline") {
      this.timeline = message.timeline;
      this.drawTimeline();
    }
    if (kind === "compare") this.drawCompared(message.rows);
    if (kind === "beside") this.drawBeside(message.rows);
    if (kind === "keep") {
      this.kept.value = message.text;
      this.kept.focus();
      this.kept.select();
      navigator.clipboard?.writeText(message.text).catch(() => {});
    }
  }

  complain(words) {
    this.fault.textContent = words;
    this.fault.hidden = !words;
  }

  ask(kind, more = {}) {
    if (!this.send) return;
    this.serial++;
    this.send({ kind, serial: this.serial, ...more });
    clearTimeout(this.alone);
    this.alone = setTimeout(() => this.complain("No kernel answers: this is the last result that is known."), NO_ANSWER);
  }

  // what a person does

  valuesOf(view) {
    return { raw: view.raw, tools: view.tools, protocol: view.protocol, ...view.options };
  }

  values() {
    const picked = Object.fromEntries(Object.entries(this.pickers).map(([name, picker]) => [name, picker.value]));
    const switched = Object.fromEntries(Object.entries(this.switches).map(([name, input]) => [name, input.checked]));
    return { raw: this.text.value, tools: this.tools.value, ...picked, ...switched };
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.edit(), WAIT);
    this.markChanges();
  }

  edit() {
    clearTimeout(this.timer);
    const values = this.values();
    if (JSON.stringify(values) === JSON.stringify(this.settled)) return;
    this.undos.push(this.settled);
    this.settled = values;
    this.ask("parse", { values });
    this.markChanges();
  }

  back() {
    const values = this.undos.pop();
    if (values) this.set(values);
  }

  original() {
    if (JSON.stringify(this.values()) === JSON.stringify(this.first)) return;
    this.undos.push(this.values());
    this.set(this.first);
  }

  set(values) {
    this.text.value = values.raw;
    this.tools.value = values.tools;
    for (const [name, picker] of Object.entries(this.pickers)) picker.value = values[name];
    for (const [name, input] of Object.entries(this.switches)) input.checked = values[name];
    this.settled = values;
    this.ask("parse", { values });
    this.markChanges();
  }

  markChanges() {
    const now = this.values();
    const spot = difference(this.first.raw, now.raw);
    const words = [];
    if (spot) {
      const [start, oldEnd, newEnd] = spot;
      const old = plain(this.first.raw.slice(start, oldEnd));
      const fresh = plain(now.raw.slice(start, newEnd));
      words.push(`at character ${start}: ${old ? `“${short(old)}”` : "nothing"} became ${fresh ? `“${short(fresh)}”` : "nothing"}`);
    }
    for (const name of ["protocol", "coerce", "reasoning", "repair", "recover"]) {
      if (now[name] !== this.first[name]) words.push(`${name}: ${this.first[name]} became ${now[name]}`);
    }
    if (now.tools !== this.first.tools) words.push("other tools");
    this.changed.textContent = words.length ? `You changed: ${words.join("; ")}.` : "As it was recorded.";
    this.undo.disabled = !this.undos.length;
    this.reset.disabled = !words.length;
  }

  go(step) {
    if (this.current.count > 1) this.ask("go", { index: (this.current.index + step + this.current.count) % this.current.count });
  }

  // the panels

  drawPipeline() {
    // An answer of the kernel redraws it under the reader's keys, which must not lose their place.
    const focused = this.pipeline.contains(this.root.getRootNode().activeElement);
    this.stage ??= "validated";
    this.pipeline.replaceChildren(
      ...this.current.pipeline.map(({ name, count }, i) => {
        const isChosen = name === this.stage;
        const parts = [make("kbd", "tp-key", String(i + 1), { "aria-hidden": "true" }), make("span", "", name), make("span", "tb-count", count)];
        const tab = { role: "tab", title: `key ${i + 1}`, "aria-controls": `${this.uid}-lines`, "aria-selected": String(isChosen), tabindex: isChosen ? "0" : "-1" };
        return makeButton("tp-tab tb-stage", parts, () => this.toStage(name), tab);
      }),
    );
    if (focused) this.focus();
    const stage = this.current.pipeline.find((s) => s.name === this.stage);
    const items = stage.lines.map(([what, detail, kind]) => make("li", `tb-line tb-${kind}`, [make("span", "tp-rule", what), make("span", "tb-detail", detail)]));
    const none = stage.name === "raw" ? "The text as it came." : "Nothing was done here.";
    this.lines.replaceChildren(items.length ? make("ul", "tb-list", items) : make("p", "tp-note", none));
    if (stage.of > stage.lines.length) this.lines.append(make("p", "tp-note", `The first ${stage.lines.length} of ${stage.of}.`));
  }

  toStage(name) {
    this.stage = name;
    this.drawPipeline();
    this.inner.setStage(STAGE_OF[name], false);
    this.focus();
  }

  drawReadings() {
    const { readings } = this.current;
    this.readings.hidden = !readings.length;
    this.readings.replaceChildren();
    if (!readings.length) return;
    const cards = readings.map((reading) => {
      const take = () => {
        this.text.value = reading.text;
        this.edit();
      };
      const parts = [make("strong", "", reading.name), make("code", "", reading.arguments), make("span", "tp-dim", `cost ${reading.cost}: ${reading.edits.join(", ")}`)];
      if (reading.why) parts.push(make("span", "tb-warn", reading.why));
      if (reading.text && this.send) parts.push(this.button("Take this one", take, "write it into the text; Undo takes it back"));
      return make("div", "tb-card", parts);
    });
    this.readings.append(make("div", "tp-title", "It may be one of these: nothing was chosen for you"), make("div", "tb-cards", cards));
  }

  drawWanted() {
    const { wanted } = this.current;
    this.wanted.hidden = !wanted.length;
    const rows = wanted.map(({ want, got, difference: differs }) => make("tr", differs ? "tb-bad" : "tb-good", cells([want || "–", got || "–", differs || "none"])));
    this.wanted.replaceChildren(...(wanted.length ? [table(["wanted", "got", "difference"], rows)] : []));
  }

  drawExchange() {
    const parts = Object.entries(this.current.exchange);
    const folds = parts.map(([name, text]) => this.fold(`The ${name} as it was recorded`, make("pre", "tb-json", text)));
    if (this.current.asked.length) {
      const asked = this.current.asked.flatMap(([role, said]) => [make("dt", "", role), make("dd", "", said)]);
      folds.unshift(this.fold("What was asked", make("dl", "tb-asked", asked)));
    }
    this.exchange.replaceChildren(...folds);
  }

  askTimeline(again = false) {
    if (this.send && (again || !this.timeline)) this.ask("timeline", { size: Number(this.size.value) || 0 });
    else if (this.timeline) this.drawTimeline();
  }

  drawTimeline() {
    const last = this.timeline.ends.length - 1;
    // The end at first; drawn again, a stream stays where it is, also at its beginning.
    const step = this.points ? Math.min(Number(this.slider.value), last) : last;
    this.points = Array.from(this.current.raw);
    this.slider.max = String(last);
    this.slider.value = String(step);
    this.scrub(Number(this.slider.value));
  }

  scrub(step) {
    const { pieces, fed, settled } = replayed(this.timeline, step);
    const last = this.timeline.ends.length - 1;
    const words = step === last ? "the end of the text" : `chunk ${step + 1} of ${last}, ${counted(fed, "character")}`;
    this.at.textContent = words;
    this.slider.setAttribute("aria-valuetext", `${words}, ${fed - settled} held back`);
    const slice = (from, to) => plain(this.points.slice(from, to).join(""));
    const fragment = document.createDocumentFragment();
    for (const piece of pieces) {
      fragment.append(make("span", `tb-e tb-e-${piece.kind}`, slice(piece.start, piece.end), { title: EVENT_WORDS[piece.kind] ?? piece.kind }));
    }
    if (fed > settled) fragment.append(make("span", "tb-held", slice(settled, fed), { title: "held back: it may still be a part of a call" }));
    if (fed < this.points.length) fragment.append(make("span", "tb-later", slice(fed, this.points.length)));
    this.fed.replaceChildren(fragment);
    const now = this.timeline.events[step];
    this.events.replaceChildren(
      ...now.map(([kind, start, end, said]) => {
        const place = end > start ? ` “${short(slice(start, end))}”` : "";
        return make("li", `tb-event tb-e-${kind}`, [make("strong", "", EVENT_WORDS[kind] ?? kind), `${place}${said ? `: ${said}` : ""}`]);
      }),
    );
    if (!now.length) this.events.append(make("li", "tp-dim", step === last ? "The end settled nothing more." : "No event: all of this chunk is held back."));
  }

  /** The values that differ where the text is read by another policy or protocol. */
  askBeside() {
    if (!this.other.length) {
      for (const [name, label] of [["coerce", "policy"], ["protocol", "protocol"]]) {
        for (const choice of this.state.choices[name]) this.other.append(make("option", "", `${label} ${choice}`, { value: `${name} ${choice}` }));
      }
      this.other.value = this.other.options[this.current.options.coerce === "none" ? 1 : 0].value;
    }
    const [name, choice] = this.other.value.split(" ");
    this.ask("beside", { values: { [name]: choice } });
  }

  drawBeside(rows) {
    const lines = rows.map(([name, here, there]) => make("tr", "", [make("th", "", name, { scope: "row" }), ...cells([here || "–", there || "–"])]));
    const words = ["", "as above", this.other.selectedOptions[0].textContent];
    this.differing.replaceChildren(rows.length ? table(words, lines) : make("p", "tp-note", "Both readings give the same values."));
  }

  drawCompared(rows) {
    const some = rows.filter((row) => row.calls.length);
    const lines = some.map(({ protocol, agrees, verdict, calls, problems }) => {
      const read = () => {
        this.pickers.protocol.value = protocol;
        this.edit();
      };
      const name = make("td", "", [this.button(protocol, read, "read the text by it")]);
      return make("tr", "", [name, ...cells([agrees, verdict, calls.join("\n"), problems.join(", ")])]);
    });
    const silent = rows.filter((row) => !row.calls.length).map((row) => row.protocol);
    this.compared.replaceChildren(table(["protocol", "agrees", "verdict", "calls", "problems"], lines));
    if (silent.length) this.compared.append(make("p", "tp-note", `No call: ${silent.join(", ")}.`));
  }

  // keys

  /** The stage that is chosen gets the focus, so that keys work at once. */
  focus() {
    this.pipeline.querySelector('[aria-selected="true"]').focus({ preventScroll: true });
  }

  onKey(event) {
    const typing = event.target.closest?.("textarea, select, input");
    if ((event.ctrlKey || event.metaKey) && event.key === "z" && !typing) {
      event.preventDefault();
      this.back();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const done = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    if (event.key === "Escape" && event.target === this.text) {
      this.focus();
      done();
      return;
    }
    if (typing) {
      event.stopPropagation();
      if (event.target.closest(".tb-view")) this.inner.onKey(event);
      return;
    }
    const stage = this.current.pipeline[Number(event.key) - 1];
    if (stage) {
      this.toStage(stage.name);
      done();
    } else if ((event.key === "n" || event.key === "p") && this.current.count > 1) {
      this.go(event.key === "n" ? 1 : -1);
      done();
    } else if (event.key === "e") {
      this.text.focus();
      done();
    } else if (this.pipeline.contains(event.target) && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
      const names = this.current.pipeline.map((s) => s.name);
      const to = names.indexOf(this.stage) + (event.key === "ArrowRight" ? 1 : -1);
      this.toStage(names[Math.min(Math.max(to, 0), names.length - 1)]);
      done();
    } else if (event.key === "/") {
      this.inner.search.focus({ preventScroll: true });
      done();
    }
  }
}

export function mountBench(root, state, send) {
  return new Bench(root, state, send);
}

function render({ model, el }) {
  const state = model.get("_state");
  const bench = mountBench(el, state, (message) => model.send(message));
  const still = document.getElementById(state.static);
  if (still) still.hidden = true;
  const stop = listen(model, { "msg:custom": (message) => bench.hear(message) });
  return () => {
    stop();
    if (still) still.hidden = false;
  };
}

export default { render };
