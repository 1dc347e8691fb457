// Two readings of one text. Text only ever goes in through textContent; nothing here talks to a network.

// One column of a reading: a line for each change, or for its value where nothing was changed.
function cell(side, column) {
  if (!side.changes.length) return make("td", "", column === "after" ? [make("span", "tpd-value", side.value)] : []);
  const said = (change) => {
    if (column === "loss") return change.lossless ? make("span", "tp-badge tp-good", "lossless") : make("span", "tp-badge tp-bad", "lossy");
    return make("span", `tpd-${column}`, change[column], column === "rule" ? { title: change.sentence } : {});
  };
  return make("td", "", side.changes.map((change) => make("div", "", [said(change)])));
}

export function mount(root, payload, { pinned = 0, onPin = () => {} } = {}) {
  const head = make("div", "tp-head");
  payload.names.forEach((name, i) => {
    if (i) head.append(make("span", "tp-facts", "→"));
    head.append(make("b", "", name), make("span", "tp-badge tp-plain", payload.protocols[i]));
  });
  const differing = payload.rows.filter((row) => row.differs).length;
  head.append(make("span", "tp-facts", `${differing} of ${payload.rows.length} rows end with another value`));

  const hearers = (number, fromText) => ({ mouseenter: () => point(number), mouseleave: () => point(0), click: () => pin(number, fromText) });
  const marks = [];
  const spans = payload.pieces.map(([piece, numbers]) => {
    if (!numbers.length) return make("span", "", piece);
    const span = make("span", "tpd-mark", piece, hearers(numbers[numbers.length - 1], true));
    marks.push([span, numbers]);
    return span;
  });
  const text = make("div", "tp-text", spans, { tabindex: "0", role: "region", "aria-label": "raw text" });

  const titles = make("tr", "", [make("th", "", "row"), make("th", "", "argument")]);
  for (const name of payload.names) {
    for (const [i, word] of ["before", "after", "rule", "loss"].entries()) {
      titles.append(make("th", i ? "" : "tpd-first", i ? word : `${name}: ${word}`));
    }
  }
  const lines = new Map();
  for (const row of payload.rows) {
    const chooser = make("button", "tpd-number", `${row.number}${row.differs ? " ≠" : ""}`, {
      type: "button",
      title: row.place,
      "aria-pressed": "false",
      "aria-label": `row ${row.number}, ${row.argument}, ${row.place}`,
      focus: () => point(row.number),
      blur: () => point(0),
    });
    const cells = row.sides.flatMap((side) => ["before", "after", "rule", "loss"].map((column) => cell(side, column)));
    const parts = [make("td", "", [chooser]), make("td", "tpd-argument", row.argument), ...cells];
    lines.set(row.number, [make("tr", row.differs ? "tpd-differs" : "", parts, hearers(row.number, false)), chooser]);
  }
  const rows = [...lines.values()].map(([tr]) => tr);
  const box = make("div", "tpd-box", [make("table", "tpd-table", [make("thead", "", [titles]), make("tbody", "", rows)])]);
  if (payload.left_out) box.append(make("p", "tp-facts", `${payload.left_out} more rows`));
  root.replaceChildren(make("div", "tp tpd", [head, text, box]));

  let pointed = 0;
  let chosen = pinned;

  function paint() {
    for (const [span, numbers] of marks) {
      span.classList.toggle("tpd-on", numbers.includes(pointed || chosen));
    }
    for (const [number, [tr, chooser]] of lines) {
      tr.classList.toggle("tpd-on", number === (pointed || chosen));
      chooser.setAttribute("aria-pressed", String(number === chosen));
    }
  }

  function point(number) {
    pointed = number;
    paint();
  }

  // A choice brings the other side into view; the same one again undoes it.
  function pin(number, fromText) {
    chosen = chosen === number ? 0 : number;
    paint();
    onPin(chosen);
    if (!chosen) return;
    const mark = marks.find(([, numbers]) => numbers.includes(number));
    const target = fromText ? lines.get(number)[0] : mark && mark[0];
    if (target) target.scrollIntoView({ block: "nearest" });
  }

  paint();
  return {
    show(number) {
      chosen = number;
      paint();
    },
  };
}

function render({ model, el }) {
  const hidden = document.getElementById(model.get("_static"));
  if (hidden) hidden.style.display = "none";
  let view;
  const draw = () => {
    view = mount(el, model.get("_payload"), {
      pinned: model.get("pinned"),
      onPin(number) {
        model.set("pinned", number);
        model.save_changes();
      },
    });
  };
  draw();
  return listen(model, { "change:_payload": draw, "change:pinned": () => view.show(model.get("pinned")) });
}

export default { render };
