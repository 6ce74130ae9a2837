// The dark colours are one rule of the style sheet that asks the system; the button answers for it.
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const darkRule = [...document.styleSheets[0].cssRules]
  .find(rule => rule.media && /prefers-color-scheme/.test(rule.media.mediaText));
const asked = darkRule.media.mediaText;
const themeButton = find("#theme");
let dark = systemDark.matches;

const dress = () => {
  themeButton.textContent = dark ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `Use ${dark ? "light" : "dark"} colours`);
  document.dispatchEvent(new Event("dressed"));
};
on(themeButton, "click", () => {
  dark = !dark;
  darkRule.media.mediaText = dark ? "screen" : "not all";
  root.dataset.theme = dark ? "dark" : "light";
  dress();
});
on(systemDark, "change", () => {
  dark = systemDark.matches;
  darkRule.media.mediaText = asked;
  delete root.dataset.theme;
  dress();
});
dress();
