// What the front ends share. Model text only ever goes in as text; nothing here talks to a network.

/** An element that holds a text, or a list of texts and elements. A function among the attributes hears the event of that name. */
function make(tag, className, content, attributes = {}) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (Array.isArray(content)) element.append(...content);
  else if (content !== undefined) element.textContent = content;
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value);
  }
  return element;
}

function makeButton(className, text, act, attributes = {}) {
  return make("button", className, text, { type: "button", click: act, ...attributes });
}

/** Heads of columns. */
function heads(words) {
  return words.map((word) => make("th", "", word, { scope: "col" }));
}

/** Hear what a widget's model says, by the name of the event, until the function that is returned is called. */
function listen(model, hearers) {
  for (const [name, hear] of Object.entries(hearers)) model.on(name, hear);
  return () => {
    for (const [name, hear] of Object.entries(hearers)) model.off(name, hear);
  };
}

