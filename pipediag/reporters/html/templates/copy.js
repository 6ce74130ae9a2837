// A button that copies each patch that is shown. The page can be read without it.
const copy = async text => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
};
const whole = shown => {
  const finding = shown.closest(".finding");
  const link = finding && finding.querySelector(".patch-link a");
  if (!link) return shown.querySelector("code").textContent;
  const bytes = Uint8Array.from(atob(link.href.split(",")[1]), letter => letter.charCodeAt(0));
  return new TextDecoder().decode(bytes);
};
document.querySelectorAll("pre.diff").forEach(shown => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.className = "copy";
  button.setAttribute("aria-label", `Copy: ${shown.getAttribute("aria-label")}`);
  button.addEventListener("click", async () => {
    button.textContent = await copy(whole(shown)) ? "Copied" : "Not allowed here";
  });
  shown.prepend(button);
});
