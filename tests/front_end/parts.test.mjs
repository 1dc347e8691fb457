// The parts of the front end that need no page: node --test tests/front_end

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const WIDGETS = new URL("../../toolparse_lab/notebook/", import.meta.url);

/** The named functions and constants of a module, which exports its entry points alone. */
function parts(file, names) {
  const source = readFileSync(new URL(file, WIDGETS), "utf8");
  const body = source.replace(/^export default .*$/m, "").replace(/^export /gm, "");
  return new Function(`${body}\nreturn { ${names.join(", ")} };`)();
}

const { plain, difference, short, replayed } = parts("bench/workbench.js", ["plain", "difference", "short", "replayed"]);
const { VERDICTS, counted, placed } = parts("parse_view.js", ["VERDICTS", "counted", "placed"]);
const { percent } = parts("browser.js", ["percent"]);

/** Numbers that look random and are the same in every run. */
function numbers(seed) {
  let state = seed;
  return (most) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * most);
  };
}

test("a difference makes the one text of the other", () => {
  const next = numbers(7);
  const text = () => Array.from({ length: next(9) }, () => "ab"[next(2)]).join("");
  for (let i = 0; i < 5000; i++) {
    const [before, after] = [text(), text()];
    const parted = difference(before, after);
    if (parted === null) {
      assert.equal(before, after);
      continue;
    }
    const [start, oldEnd, newEnd] = parted;
    assert.equal(before.slice(0, start) + after.slice(start, newEnd) + before.slice(oldEnd), after);
    assert.ok(start <= oldEnd && start <= newEnd);
    assert.notEqual(before[start], after[start] ?? Symbol("end"));
  }
});

test("invisible characters are shown, and all others stay", () => {
  assert.equal(plain("a\tb\nc é 港 😀"), "a\tb\nc é 港 😀");
  assert.equal(plain("\u001b[31m"), "⟨ESC⟩[31m");
  assert.equal(plain("\u202ea\u0000\ufeff"), "⟨202E⟩a⟨0000⟩⟨FEFF⟩");
  for (let code = 0; code < 0x2100; code++) {
    const shown = plain(String.fromCodePoint(code));
    // eslint-disable-next-line no-control-regex
    assert.doesNotMatch(shown, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
  }
});

test("a long text is cut with a sign", () => {
  assert.equal(short("abc", 3), "abc");
  assert.equal(short("abcd", 3), "abc…");
});

test("a replay draws each character once, and a retraction takes what is behind it", () => {
  const timeline = {
    ends: [4, 8, 12, 12],
    settled: [3, 8, 4, 12],
    events: [
      [["TextDelta", 0, 2, ""], ["TextDelta", 2, 3, ""]],
      [["CallStart", 3, 4, ""], ["CallDelta", 4, 6, ""], ["CallDelta", 6, 8, ""]],
      [["Retract", 4, -1, ""]],
      [["TextDelta", 4, 12, ""], ["Withdrawn", 12, 12, ""]],
    ],
  };
  assert.deepEqual(replayed(timeline, 0), { pieces: [{ kind: "TextDelta", start: 0, end: 3 }], fed: 4, settled: 3 });
  assert.deepEqual(replayed(timeline, 1).pieces.map((p) => [p.kind, p.start, p.end]), [["TextDelta", 0, 3], ["CallStart", 3, 4], ["CallDelta", 4, 8]]);
  assert.deepEqual(replayed(timeline, 2).pieces.map((p) => p.end), [3, 4]);
  for (let step = 0; step < timeline.ends.length; step++) {
    let at = 0;
    for (const piece of replayed(timeline, step).pieces) {
      assert.equal(piece.start, at);
      at = piece.end;
    }
    assert.equal(at, timeline.settled[step]);
  }
});

test("a retraction in the middle of a piece shortens it", () => {
  const timeline = { ends: [9], settled: [5], events: [[["CallDelta", 0, 9, ""], ["Retract", 5, -1, ""]]] };
  assert.deepEqual(replayed(timeline, 0).pieces, [{ kind: "CallDelta", start: 0, end: 5 }]);
});

test("every verdict of the parser has its badge", () => {
  assert.deepEqual(Object.keys(VERDICTS).sort(), JSON.parse(process.env.TOOLPARSE_VERDICTS ?? "[]").sort());
});

test("numbers and places are put into words", () => {
  assert.equal(counted(1, "call"), "1 call");
  assert.equal(counted(12500, "call"), "12,500 calls");
  assert.equal(placed(-1, -1), "no place of its own");
  assert.equal(placed(3, 3), "before character 3");
  assert.equal(placed(3, 5), "characters 3 to 5");
  assert.equal(percent(0.256), "26 %");
});
