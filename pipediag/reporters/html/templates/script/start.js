// What all parts of the page's script use. Nothing here is needed to read the page.
const find = (selector, within = document) => within.querySelector(selector);
const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];
const root = document.documentElement;
const on = (target, names, act) => names.split(" ").forEach(name => target.addEventListener(name, act));

const button = (text, act) => {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  on(made, "click", act);
  return made;
};

// Files stand in the page as gzip in base64.
const bytesIn = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const textOf = element => new Response(
  new Blob([bytesIn(element.textContent)]).stream().pipeThrough(new DecompressionStream("gzip"))
).text();
const canUnpack = "DecompressionStream" in window;

findAll(".needs-script").forEach(element => { element.hidden = false; });
