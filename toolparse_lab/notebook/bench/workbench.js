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

class Bench {
  /** send: takes a message for the kernel; null where there is none, as on a page from disk. */
  constructor(root, state, send) {
    this.state = state;
    this.send = send;
    this.serial = 0;
    this.shown = 0;
    this.undos = [];
    this.uid = `tb${Math.random().toString(36).slice(2, 9)}`;
    this.root = make("div", "tp tb", undefined, {
      "data-lm-suppress-shortcuts": "true",
      role: "region",
      "aria-label": "Workbench",
    });
    root.replaceChildren(this.root);
    this.build();
    this.take(state.view, true);
    // A page that is loaded again has what was changed, and can go back to what was recorded.
    this.first = this.valuesOf(state.recorded);
    this.root.addEventListener("keydown", (event) => this.onKey(event), true);
  }

  // what is there

  build() {
    this.bar = make("div", "tb-bar", undefined, { role: "toolbar", "aria-label": "How the text is read" });
    this.pickers = {};
    for (const [name, label] of [["protocol", "protocol"], ["coerce", "policy"], ["reasoning", "reasoning"]]) {
      const picker = make("select", "tb-pick", undefined, { "aria-label": label });
      picker.addEventListener("change", () => this.edit());
      this.pickers[name] = picker;
      const box = make("label", "tb-label", label);
      box.append(picker);
      this.bar.append(box);
    }
    this.switches = {};
    for (const [name, title] of [["repair", "read damaged bodies"], ["recover", "read calls outside their format"]]) {
      const box = make("label", "tb-label", undefined, { title });
      const input = make("input", "", undefined, { type: "checkbox" });
      input.addEventListener("change", () => this.edit());
      this.switches[name] = input;
      box.append(input, name);
      this.bar.append(box);
    }
    this.undo = this.button("Undo", () => this.back(), "Ctrl+Z outside the text");
    this.reset = this.button("Original", () => this.original(), "as it was recorded");
    this.bar.append(this.undo, this.reset);

    this.walk = make("span", "tb-walk");
    this.place = make("span", "tb-place", "", { role: "status" });
    this.walk.append(this.button("‹ p", () => this.go(-1), "the one before: key p", "previous"), this.place, this.button("n ›", () => this.go(1), "the next one: key n", "next"));

    this.title = make("div", "tb-title");
    this.sentence = make("p", "tb-sentence", "", { role: "status", "aria-live": "polite" });
    this.fault = make("p", "tb-fault", "", { role: "alert", hidden: "" });

    this.text = make("textarea", "tb-text", undefined, { "aria-label": "Raw text", spellcheck: "false", rows: "6", autocomplete: "off" });
    this.text.addEventListener("input", () => this.later());
    this.changed = make("p", "tb-changed", "", { role: "status" });
    this.tools = make("textarea", "tb-text tb-tools", undefined, { "aria-label": "Tools as JSON", spellcheck: "false", rows: "10" });
    this.tools.addEventListener("input", () => this.later());
    const texts = make("div", "tb-texts");
    const left = make("label", "tb-field", this.send ? "Raw text: change it" : "Raw text");
    left.append(this.text, this.changed);
    this.toolBox = this.fold("Tools", this.tools);
    texts.append(left, this.toolBox);

    this.pipeline = make("div", "tb-stages", undefined, { role: "tablist", "aria-label": "Pipeline" });
    this.lines = make("div", "tb-lines", undefined, { role: "tabpanel", id: `${this.uid}-lines`, tabindex: "0" });
    this.readings = make("div", "tb-readings");
    this.wanted = make("div", "tb-wanted");
    this.view = make("div", "tb-view");
    this.stream = this.fold("Stream: replay it chunk by chunk", this.streamPanel(), () => this.askTimeline());
    this.compared = make("div", "tb-compared");
    this.compare = this.fold("All protocols side by side", this.compared, () => this.askCompare());
    this.other = make("select", "tb-pick", undefined, { "aria-label": "the other reading" });
    this.other.addEventListener("change", () => this.askBeside());
    this.differing = make("div", "tb-compared");
    const beside = make("div");
    beside.append(this.other, this.differing);
    this.beside = this.fold("Another policy or protocol, value by value", beside, () => this.askBeside());
    this.exchange = make("div", "tb-exchange");
    this.keep = this.fold("Keep it", this.keepPanel());
    this.root.append(this.bar, this.title, this.sentence, this.fault, texts, this.readings, this.wanted, this.pipeline, this.lines, this.view, this.stream, this.compare, this.beside, this.exchange, this.keep, this.keysHelp());
  }

  keysHelp() {
    const keys = make("div", "tp-keys tb-keys", undefined, { "aria-hidden": "true" });
    for (const [key, word] of [["e", "edit"], ["Esc", "leave the text"], ["1–6", "stage"], ["n p", "next, previous"], ["/", "search"], ["← →", "chunk"]]) {
      keys.append(make("kbd", "tp-key", key), make("span", "", word));
    }
    return keys;
  }

  button(text, act, title, label) {
    const button = make("button", "tb-button", text, { type: "button", title });
    if (label) button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    return button;
  }

  fold(title, content, onOpen = () => {}) {
    const box = make("details", "tb-fold");
    box.append(make("summary", "", title), content);
    box.addEventListener("toggle", () => box.open && onOpen());
    return box;
  }

  streamPanel() {
    const panel = make("div", "tb-stream");
    const controls = make("div", "tb-controls");
    this.size = make("input", "tb-size", undefined, { type: "number", min: "0", max: "100000", value: "0", "aria-label": "Characters a chunk, 0 as recorded" });
    this.size.addEventListener("change", () => this.askTimeline(true));
    const size = make("label", "tb-label", "characters a chunk (0: as recorded)");
    size.append(this.size);
    this.slider = make("input", "tb-slider", undefined, { type: "range", min: "0", max: "0", value: "0", role: "slider", "aria-label": "Chunk" });
    this.slider.addEventListener("input", () => this.scrub(Number(this.slider.value)));
    this.at = make("span", "tb-at", "", { role: "status" });
    controls.append(size, this.slider, this.at);
    this.fed = make("div", "tb-fed", undefined, { "aria-label": "The text so far" });
    this.events = make("ol", "tb-events", undefined, { "aria-label": "Events of this chunk" });
    panel.append(controls, this.fed, make("div", "tb-key", "plain: settled · framed: held back · pale: not there yet"), this.events);
    return panel;
  }

  keepPanel() {
    const panel = make("div", "tb-keep");
    this.kept = make("textarea", "tb-text", undefined, { readonly: "", rows: "8", "aria-label": "Snippet" });
    const row = make("div", "tb-controls");
    for (const [kind, words] of [["pytest", "as a pytest case"], ["python", "as Python"], ["curl", "the request as curl"]]) {
      row.append(this.button(words, () => this.ask("keep", { as: kind }), `copy ${words}`));
    }
    panel.append(row, this.kept);
    return panel;
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
    this.fill(this.pickers.protocol, this.state.choices.protocol, view.protocol);
    this.fill(this.pickers.coerce, this.state.choices.coerce, view.options.coerce);
    this.fill(this.pickers.reasoning, this.state.choices.reasoning, view.options.reasoning);
    for (const [name, input] of Object.entries(this.switches)) input.checked = view.options[name];
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
    if (this.compare.open) this.askCompare();
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
    this.compare.hidden = true;
    this.beside.hidden = true;
    this.keep.hidden = true;
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
      ...this.current.pipeline.map((stage, i) => {
        const tab = make("button", "tp-tab tb-stage", undefined, { type: "button", role: "tab", title: `key ${i + 1}`, "aria-controls": `${this.uid}-lines`, "aria-selected": String(stage.name === this.stage), tabindex: stage.name === this.stage ? "0" : "-1" });
        tab.append(make("kbd", "tp-key", String(i + 1), { "aria-hidden": "true" }), make("span", "", stage.name), make("span", "tb-count", stage.count));
        tab.addEventListener("click", () => this.toStage(stage.name));
        return tab;
      }),
    );
    if (focused) this.pipeline.querySelector('[aria-selected="true"]')?.focus({ preventScroll: true });
    const stage = this.current.pipeline.find((s) => s.name === this.stage);
    const list = make("ul", "tb-list");
    for (const [what, detail, kind] of stage.lines) {
      const item = make("li", `tb-line tb-${kind}`);
      item.append(make("span", "tp-rule", what), make("span", "tb-detail", detail));
      list.append(item);
    }
    this.lines.replaceChildren(list);
    if (!stage.lines.length) this.lines.replaceChildren(make("p", "tp-note", stage.name === "raw" ? "The text as it came." : "Nothing was done here."));
    if (stage.of > stage.lines.length) this.lines.append(make("p", "tp-note", `The first ${stage.lines.length} of ${stage.of}.`));
  }

  toStage(name) {
    this.stage = name;
    this.drawPipeline();
    this.inner.setStage(STAGE_OF[name], false);
    this.pipeline.querySelector('[aria-selected="true"]').focus({ preventScroll: true });
  }

  drawReadings() {
    const { readings } = this.current;
    this.readings.hidden = !readings.length;
    this.readings.replaceChildren();
    if (!readings.length) return;
    this.readings.append(make("div", "tp-title", "It may be one of these: nothing was chosen for you"));
    const row = make("div", "tb-cards");
    for (const reading of readings) {
      const card = make("div", "tb-card");
      card.append(make("strong", "", reading.name), make("code", "", reading.arguments), make("span", "tp-dim", `cost ${reading.cost}: ${reading.edits.join(", ")}`));
      if (reading.why) card.append(make("span", "tb-warn", reading.why));
      if (reading.text && this.send) {
        card.append(
          this.button("Take this one", () => {
            this.text.value = reading.text;
            this.edit();
          }, "write it into the text; Undo takes it back"),
        );
      }
      row.append(card);
    }
    this.readings.append(row);
  }

  drawWanted() {
    const { wanted } = this.current;
    this.wanted.hidden = !wanted.length;
    this.wanted.replaceChildren();
    if (!wanted.length) return;
    const table = make("table", "tb-table");
    const head = make("tr");
    for (const word of ["wanted", "got", "difference"]) head.append(make("th", "", word, { scope: "col" }));
    table.append(head);
    for (const one of wanted) {
      const row = make("tr", one.difference ? "tb-bad" : "tb-good");
      row.append(make("td", "", one.want || "–"), make("td", "", one.got || "–"), make("td", "", one.difference || "none"));
      table.append(row);
    }
    this.wanted.append(table);
  }

  drawExchange() {
    const parts = Object.entries(this.current.exchange);
    const folds = parts.map(([name, text]) => this.fold(`The ${name} as it was recorded`, make("pre", "tb-json", text)));
    if (this.current.asked.length) {
      const asked = make("dl", "tb-asked");
      for (const [role, said] of this.current.asked) asked.append(make("dt", "", role), make("dd", "", said));
      folds.unshift(this.fold("What was asked", asked));
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
        const item = make("li", `tb-event tb-e-${kind}`);
        const place = end > start ? ` “${short(slice(start, end))}”` : "";
        item.append(make("strong", "", EVENT_WORDS[kind] ?? kind), `${place}${said ? `: ${said}` : ""}`);
        return item;
      }),
    );
    if (!now.length) this.events.append(make("li", "tp-dim", step === last ? "The end settled nothing more." : "No event: all of this chunk is held back."));
  }

  askCompare() {
    this.ask("compare");
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
    const table = this.table(["", "as above", this.other.selectedOptions[0].textContent]);
    for (const row of rows) {
      const line = make("tr");
      line.append(make("th", "", row[0], { scope: "row" }), make("td", "", row[1] || "–"), make("td", "", row[2] || "–"));
      table.append(line);
    }
    this.differing.replaceChildren(rows.length ? table : make("p", "tp-note", "Both readings give the same values."));
  }

  table(words) {
    const table = make("table", "tb-table");
    const head = make("tr");
    for (const word of words) head.append(make("th", "", word, { scope: "col" }));
    table.append(head);
    return table;
  }

  drawCompared(rows) {
    const table = this.table(["protocol", "agrees", "verdict", "calls", "problems"]);
    const some = rows.filter((row) => row.calls.length);
    for (const row of some) {
      const line = make("tr");
      const name = make("td");
      name.append(this.button(row.protocol, () => {
        this.pickers.protocol.value = row.protocol;
        this.edit();
      }, "read the text by it"));
      line.append(name, make("td", "", row.agrees), make("td", "", row.verdict), make("td", "", row.calls.join("\n")), make("td", "", row.problems.join(", ")));
      table.append(line);
    }
    const silent = rows.filter((row) => !row.calls.length).map((row) => row.protocol);
    this.compared.replaceChildren(table);
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
  const hear = (message) => bench.hear(message);
  model.on("msg:custom", hear);
  return () => {
    model.off("msg:custom", hear);
    if (still) still.hidden = false;
  };
}

export default { render };
