// The timeline: zoom, pan, and what lies under the pointer or the cursor.
const LEAST_US = 50;
const timeline = find("#timeline");
const packedLanes = find("#timeline-data");

const showTimeline = content => {
  const lanes = content.lanes.map(prepared);
  const canvas = find("canvas", timeline);
  const said = find(".said", timeline);
  const pen = canvas.getContext("2d");
  const begin = Math.min(...lanes.map(lane => lane.begin));
  const end = Math.max(...lanes.map(lane => lane.end));
  const view = { start: begin, length: Math.max(end - begin, LEAST_US), width: 1 };
  const height = lanes.reduce((sum, lane) => sum + laneHeight(lane), 0) + 20;
  const tops = [];
  lanes.reduce((top, lane) => { tops.push(top); return top + laneHeight(lane); }, 0);
  let colours = {};
  let asked = 0;

  const readColours = () => {
    const style = getComputedStyle(root);
    const probe = document.createElement("span");
    timeline.append(probe);
    const paints = {};
    const names = lanes.flatMap(lane => lane.colours || lane.series.map(one => one.colour));
    [...names, "input_wait"].forEach(name => {
      probe.className = name;
      paints[name] = getComputedStyle(probe).getPropertyValue("--c").trim() || "gray";
    });
    probe.remove();
    const forced = matchMedia("(forced-colors: active)").matches;
    colours = {
      paints,
      ink: forced ? "CanvasText" : style.getPropertyValue("--ink"),
      soft: forced ? "CanvasText" : style.getPropertyValue("--soft"),
      hair: forced ? "GrayText" : style.getPropertyValue("--hair"),
      track: forced ? "Canvas" : style.getPropertyValue("--track"),
    };
  };
  const paint = name => colours.paints[name];

  const draw = () => {
    asked = 0;
    const ratio = devicePixelRatio || 1;
    view.width = canvas.clientWidth;
    const pixels = [Math.round(view.width * ratio), Math.round(height * ratio)];
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, view.width, height);
    pen.font = "12px system-ui, sans-serif";
    drawAxis(pen, view, height - 20, colours);
    lanes.forEach((lane, at) => {
      const top = tops[at] + TITLE;
      const size = lane.kind === "areas" ? AREAS : BOXES;
      pen.fillStyle = colours.soft;
      pen.fillText(lane.title + (lane.unit ? `, up to ${lane.top} ${lane.unit}` : ""), 0, tops[at] + 13);
      pen.globalAlpha = 0.5;
      pen.fillStyle = colours.track;
      pen.fillRect(0, top, view.width, size);
      pen.globalAlpha = 1;
      (lane.kind === "areas" ? drawAreas : drawBoxes)(pen, lane, view, top, paint);
    });
  };
  const redraw = () => { asked = asked || requestAnimationFrame(draw); };

  const tellView = () => `${duration(Math.abs(view.length))} from ${duration(Math.max(0, view.start))} on`;
  const look = (start, length) => {
    view.length = Math.min(Math.max(length, LEAST_US), end - begin);
    view.start = Math.min(Math.max(start, begin), end - view.length);
    said.textContent = `Seen: ${tellView()}.`;
    redraw();
  };
  const zoom = (times, at = 0.5) => {
    const length = view.length / times;
    look(view.start + (view.length - length) * at, length);
  };
  const whole = () => look(begin, end - begin);

  const tell = (x, y) => {
    const at = tops.findLastIndex(top => top <= y);
    const lane = lanes[at];
    if (!lane) return;
    const time = view.start + x / view.width * view.length;
    if (lane.kind === "areas") {
      const place = Math.min(lane.times.length - 1, above(lane.times, time));
      said.textContent = lane.series.map(one => `${one.title} ${one.values[place]} ${lane.unit}`).join("; ");
      return;
    }
    const box = boxAt(lane, time, 2 * view.length / view.width);
    if (box < 0) { said.textContent = `${lane.title}: nothing at ${duration(Math.max(0, time))}.`; return; }
    const wait = lane.inner && lane.inner[box] ? `, of which ${duration(lane.inner[box])} wait for input` : "";
    said.textContent = `${lane.words[lane.word[box]]}: ${duration(lane.lengths[box])}${wait}, ` +
      `at ${duration(Math.max(0, lane.starts[box]))}.`;
  };

  const keys = {
    ArrowLeft: () => look(view.start - view.length / 5, view.length),
    ArrowRight: () => look(view.start + view.length / 5, view.length),
    "+": () => zoom(2), "=": () => zoom(2), "-": () => zoom(0.5),
    Home: whole, 0: whole,
  };
  on(canvas, "keydown", event => {
    const act = !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  on(canvas, "wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 200), event.offsetX / view.width);
  });
  on(canvas, "dblclick", event => zoom(4, event.offsetX / view.width));
  let held = null;
  on(canvas, "pointerdown", event => {
    held = { x: event.clientX, start: view.start };
    canvas.setPointerCapture(event.pointerId);
  });
  on(canvas, "pointerup pointercancel", () => { held = null; });
  on(canvas, "pointermove", event => {
    if (held) look(held.start - (event.clientX - held.x) / view.width * view.length, view.length);
    else tell(event.offsetX, event.offsetY);
  });

  const views = find(".views", timeline);
  views.append(
    button("All", whole), button("Zoom in", () => zoom(2)), button("Zoom out", () => zoom(0.5)),
    ...content.views.map(one => button(one.title, () => look(one.start - one.length / 20, one.length * 1.1))),
  );
  const legend = find(".legend", timeline);
  const known = new Map();
  lanes.forEach(lane => (lane.series || []).forEach(one => known.set(one.title, one.colour)));
  known.set("Wait for input within a step", "input_wait");
  known.forEach((colour, title) => {
    const entry = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = `swatch ${colour}`;
    entry.append(swatch, title);
    legend.append(entry);
  });

  canvas.style.height = `${height}px`;
  timeline.hidden = false;
  findAll("[href='#timeline-title']").forEach(link => { link.parentElement.hidden = false; });
  on(document, "dressed", () => { readColours(); redraw(); });
  new ResizeObserver(redraw).observe(canvas);
  readColours();
  draw();
};

if (timeline && packedLanes && canUnpack) {
  textOf(packedLanes).then(text => showTimeline(JSON.parse(text)));
}
