// Lanes of boxes and areas on a canvas. A lane knows its numbers, a view what part of the time is seen.
const TITLE = 18;
const BOXES = 18;
const AREAS = 46;
const APART = 8;
const laneHeight = lane => TITLE + (lane.kind === "areas" ? AREAS : BOXES) + APART;

const added = differences => {
  const sums = new Float64Array(differences.length);
  let sum = 0;
  differences.forEach((difference, at) => { sum += difference; sums[at] = sum; });
  return sums;
};

const prepared = lane => {
  if (lane.kind === "areas") {
    const times = added(lane.times);
    const tops = lane.series[0].values.map((_, at) =>
      lane.series.reduce((sum, one) => sum + one.values[at], 0));
    return { ...lane, times, top: Math.max(...tops, 1), end: times[times.length - 1], begin: times[0] };
  }
  const starts = new Float64Array(lane.starts.length);
  let end = -Infinity;
  for (let at = 0, before = 0; at < starts.length; at++) {
    starts[at] = before + lane.starts[at];
    before = starts[at] + lane.lengths[at];
    end = Math.max(end, before);
  }
  return { ...lane, starts, end, begin: starts[0] };
};

// The first place whose value is above; the values rise.
const above = (values, value) => {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > value) high = middle; else low = middle + 1;
  }
  return low;
};

const boxAt = (lane, time, slack) => {
  for (let at = above(lane.starts, time + slack) - 1, seen = 0; at >= 0 && seen < 50; at--, seen++) {
    if (lane.starts[at] + lane.lengths[at] >= time - slack) return at;
  }
  return -1;
};

const drawBoxes = (pen, lane, view, top, paint) => {
  const scale = view.width / view.length;
  const first = Math.max(0, above(lane.starts, view.start) - 50);
  let drawnTo = -1, drawnColour = -1;
  for (let at = first; at < lane.starts.length; at++) {
    const left = (lane.starts[at] - view.start) * scale;
    if (left > view.width) break;
    const right = left + lane.lengths[at] * scale;
    if (right < 0) continue;
    const colour = lane.colour[at];
    // What falls onto pixels that have this colour already changes nothing.
    if (right <= drawnTo && colour === drawnColour) continue;
    const from = Math.max(left, -1);
    const width = Math.max(1, Math.min(right, view.width + 1) - from);
    pen.fillStyle = paint(lane.colours[colour]);
    pen.fillRect(from, top, width > 3 ? width - 0.5 : width, BOXES);
    if (lane.inner && lane.inner[at]) {
      pen.fillStyle = paint("input_wait");
      const inner = Math.min(left + lane.inner[at] * scale, view.width + 1) - from;
      if (width > 3) { if (inner > 0) pen.fillRect(from, top, inner, BOXES); } else {
        // Too narrow for two colours side by side: the wait as a share of the height.
        const share = Math.min(1, lane.inner[at] / lane.lengths[at]);
        pen.fillRect(from, top + BOXES * (1 - share), width, BOXES * share);
      }
    }
    drawnTo = from + Math.max(width, 1);
    drawnColour = colour;
  }
};

const drawAreas = (pen, lane, view, top, paint) => {
  const scale = view.width / view.length;
  const first = Math.max(0, above(lane.times, view.start) - 2);
  const last = Math.min(lane.times.length, above(lane.times, view.start + view.length) + 1);
  if (last - first < 2) return;
  const below = new Float64Array(last - first);
  lane.series.forEach(series => {
    pen.fillStyle = paint(series.colour);
    pen.beginPath();
    const y = value => top + AREAS * (1 - value / lane.top);
    const x = at => (lane.times[at] - view.start) * scale;
    for (let at = first; at < last; at++) pen.lineTo(x(at), y(below[at - first] + series.values[at]));
    for (let at = last - 1; at >= first; at--) pen.lineTo(x(at), y(below[at - first]));
    pen.fill();
    for (let at = first; at < last; at++) below[at - first] += series.values[at];
  });
};

const duration = us => {
  if (us >= 120e6) return `${(us / 60e6).toFixed(1)} min`;
  if (us >= 1e6) return `${(us / 1e6).toFixed(us >= 1e7 ? 1 : 2)} s`;
  return us >= 1000 ? `${(us / 1000).toFixed(us >= 1e5 ? 0 : 2)} ms` : `${Math.round(us)} \u00b5s`;
};

const drawAxis = (pen, view, bottom, colours) => {
  const rough = view.length / Math.max(2, Math.floor(view.width / 110));
  const power = 10 ** Math.floor(Math.log10(rough));
  const tick = [1, 2, 5, 10].map(times => times * power).find(one => one >= rough);
  pen.textAlign = "center";
  for (let time = Math.ceil(view.start / tick) * tick; time < view.start + view.length; time += tick) {
    const x = Math.round((time - view.start) * view.width / view.length) + 0.5;
    pen.fillStyle = colours.hair;
    pen.fillRect(x, 0, 1, bottom);
    pen.fillStyle = colours.soft;
    const text = time === 0 ? "0" : (time < 0 ? "\u2212" : "") + duration(Math.abs(time));
    if (x > 24 && x < view.width - 24) pen.fillText(text, x, bottom + 14);
  }
  pen.textAlign = "left";
};
