// Places become links into an editor that the reader has named; nothing tells which one there is.
const EDITORS = {
  "VS Code": "vscode://file$path:$line",
  Cursor: "cursor://file$path:$line",
  PyCharm: "pycharm://open?file=$path&line=$line",
};
const editor = find("#editor");
// A page of a file may be allowed to keep nothing.
const kept = act => { try { return act(localStorage); } catch { return null; } };

const linkPlaces = () => findAll(".place[title]").forEach(place => {
  const [, path, line] = /^(\/[^\u2026]+):(\d+)$/.exec(place.title) || [];
  if (!path) return;
  const text = place.textContent;
  place.textContent = text;
  if (!editor.value) return;
  const link = document.createElement("a");
  link.textContent = text;
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  link.href = EDITORS[editor.value].replace("$line", line).replace("$path", () => encoded);
  place.replaceChildren(link);
});
editor.append(...Object.keys(EDITORS).map(name => new Option(name)));
editor.value = kept(store => store.pipediagEditor) || "";
if (editor.selectedIndex < 0) editor.value = "";
on(editor, "change", () => { kept(store => { store.pipediagEditor = editor.value; }); linkPlaces(); });
linkPlaces();
