// The session and its tables out of the page, and the report as Markdown for an issue.
const save = (name, content) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};

const attached = findAll("script.attached");
const listed = find("#files");
if (canUnpack && listed) {
  attached.forEach(element => {
    const name = element.dataset.name;
    listed.append(button(name, async () => {
      const type = name.endsWith(".json") ? "application/json" : "text/plain";
      save(name, new Blob([await textOf(element)], { type }));
    }));
  });
}

const copyButton = find("#copy");
const markdown = attached.find(element => element.dataset.name === "report.md");
copyButton.hidden = !(canUnpack && markdown);

const copyByHand = text => {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
};
const copy = async text => {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    done = copyByHand(text);
  }
  found.textContent = done ? "Copied." : "The browser does not let this page copy.";
  return done;
};
on(copyButton, "click", async () => copy(await textOf(markdown)));

// A change is copied as the patch that its finding offers; what is to be put in by hand as it stands.
const patchShown = shown => {
  const first = shown.closest(".do-first");
  const finding = first ? document.getElementById(find(".proof a", first).hash.slice(1)) : shown.closest(".finding");
  const link = finding && find(".patch-link a", finding);
  return link ? new TextDecoder().decode(bytesIn(link.href.split(",")[1])) : find("code", shown).textContent;
};
findAll("pre.diff").forEach(shown => {
  const text = patchShown(shown);
  const made = button("Copy", async () => { if (await copy(text)) made.textContent = "Copied"; });
  made.className = "copy";
  made.setAttribute("aria-label", `Copy: ${shown.getAttribute("aria-label")}`);
  shown.prepend(made);
});
