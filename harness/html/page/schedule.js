'use strict';
// One run of each variant: who worked on what when, and what lay where in memory meanwhile.

const LANE = 26;  // Of a thread, pixels.

// {variant, schedule} of each variant that has one with this many threads.
function schedulesWith(model, threads) {
  return model.variants.flatMap((variant) => variant.schedules.filter((one) => one.threads === threads).map((schedule) => ({ variant, schedule })));
}

// Numbers of threads that some variant has a schedule with.
function scheduledThreads(model) {
  return [...new Set(model.variants.flatMap((variant) => variant.schedules.map((one) => one.threads)))];
}

function stepPlace(step) {
  return step ? placeOf(step.op, step.kernel, step.node) : 'layout';
}

function stepName(step) {
  return step ? step.node || step.op : 'an input';
}

// In the units of the page's other tables.
function microseconds(value) {
  return value < 1000 ? `${ms(value)} µs` : `${ms(value / 1000)} ms`;
}

function placeLegend(places) {
  return el('div', { class: 'legend' }, PLACES.filter((place) => places.has(place)).map((place) => {
    const dot = el('span', { class: 'dot' });
    dot.style.background = css(PLACE_COLORS[place]);
    return el('span', { title: PLACE_HELP[place] }, dot, place);
  }));
}

// Threads as lanes, spans as boxes; variants below one another, on one scale of time.
class TimelineView {
  constructor(model) {
    this.model = model;
    const threads = scheduledThreads(model);
    this.threads = threads[threads.length - 1];
    this.picked = null;  // {variant, step} whose arrows stay.
    this.box = el('div', { id: 'timeline-chart' });
    this.zoom = d3.zoom().scaleExtent([1, 5000]).on('zoom', () => this.moved())
      .filter((first, second) => { const event = first instanceof Event ? first : d3.event || second; return event.type !== 'wheel' && !event.button; });
    const button = (text, title, action) => el('button', { type: 'button', text, title, 'aria-label': title, onclick: action });
    this.element = section('timeline', 'Timeline',
      el('div', { class: 'row' },
        threads.length > 1 && choice(threads.map((count) => [count, plural(count, 'thread')]), this.threads, (value) => { this.threads = value; this.picked = null; this.draw(); }, 'Threads'),
        el('span', { class: 'spacer' }),
        el('span', { class: 'group' }, button('−', 'Zoom the timeline out', () => this.scaleBy(1 / 2)), button('+', 'Zoom the timeline in', () => this.scaleBy(2)),
          button('all', 'Show all of the timeline', () => this.svg.call(this.zoom.transform, d3.zoomIdentity)))),
      this.box,
      el('p', { class: 'muted', text: 'One run at the first batch size, recorded apart from those that were timed. A box is a thread at work on a step, a gap is a thread that waits. Drag moves, Ctrl and the wheel zoom; a click on a step shows whose results it reads and who reads its own. trace.json beside results.json has the same for Perfetto.' }));
  }

  start() {
    this.draw();
  }

  draw() {
    const width = Math.max(300, this.box.clientWidth || 900);
    const [left, right] = [62, 6];
    this.groups = [];
    let y = 30;
    for (const { variant, schedule } of schedulesWith(this.model, this.threads)) {
      const count = d3.max(schedule.span_thread) + 1 || 1;
      const total = d3.max(schedule.span_end_us) || 0;
      const busy = d3.sum(schedule.span_end_us.map((end, i) => end - schedule.span_begin_us[i]));
      this.groups.push({ variant, schedule, y: y + 20, count, total, idle: total > 0 ? Math.max(0, 1 - busy / (total * schedule.threads)) : 0, spans: this.spansOf(schedule, count) });
      y += 20 + count * LANE + 16;
    }
    const height = y;
    this.x0 = d3.scaleLinear([0, d3.max(this.groups, (group) => group.total) || 1], [left, width - right]);
    this.left = left;
    this.width = width;
    const svg = d3.create('svg').attr('width', width).attr('height', height).attr('role', 'img').attr('aria-label', 'Timeline of the threads');
    svg.append('clipPath').attr('id', 'timeline-clip').append('rect').attr('x', left).attr('width', width - left - right).attr('height', height);
    this.axis = svg.append('g').attr('class', 'axis').attr('transform', 'translate(0,24)');
    for (const group of this.groups) {
      svg.append('text').attr('x', 4).attr('y', group.y - 6).attr('class', 'strong')
        .text(`${shortened(group.variant.name, 40)}: ${microseconds(group.total)}, threads idle ${percent(group.idle)} of it`);
      for (let thread = 0; thread < group.count; ++thread) {
        svg.append('rect').attr('class', 'idle').attr('x', left).attr('width', width - left - right).attr('y', group.y + thread * LANE).attr('height', LANE - 3);
        svg.append('text').attr('class', 'caption').attr('x', 4).attr('y', group.y + thread * LANE + 15).text(`thread ${thread}`);
      }
    }
    const clipped = svg.append('g').attr('clip-path', 'url(#timeline-clip)');
    this.world = clipped.append('g');
    this.arrows = clipped.append('g');
    this.zoom.extent([[left, 0], [width - right, height]]).translateExtent([[left, 0], [width - right, height]]);
    this.svg = svg;
    svg.call(this.zoom).on('dblclick.zoom', null);
    const node = svg.node();
    node.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    const spanAt = (event) => event.target.closest('.span')?.__data__;
    node.addEventListener('click', (event) => this.pick(spanAt(event)));
    node.addEventListener('mousemove', (event) => this.hover(spanAt(event), event));
    node.addEventListener('mouseleave', () => tooltip.hide());
    const places = new Set(this.groups.flatMap(({ schedule }) => schedule.steps.map(stepPlace)));
    this.box.replaceChildren(node, placeLegend(places));
    this.drawSpans();
  }

  // By thread, in order of time.
  spansOf(schedule, count) {
    const lanes = Array.from({ length: count }, () => []);
    schedule.span_step.forEach((step, i) => lanes[schedule.span_thread[i]].push({ step, thread: schedule.span_thread[i], begin: schedule.span_begin_us[i], end: schedule.span_end_us[i] }));
    for (const lane of lanes) lane.sort((a, b) => a.begin - b.begin);
    return lanes;
  }

  get x() {
    return d3.zoomTransform(this.svg.node()).rescaleX(this.x0);
  }

  moved() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      this.drawSpans();
    });
  }

  scaleBy(factor) {
    this.svg.call(this.zoom.scaleBy, factor, [this.left, 0]);
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;  // The page scrolls.
    event.preventDefault();
    const t = d3.zoomTransform(this.svg.node());
    const k = Math.min(5000, Math.max(1, t.k * 2 ** (-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.004))));
    const x = t.invertX(event.offsetX);
    const [left, right] = this.x0.range();
    const shift = Math.max(right * (1 - k), Math.min(left * (1 - k), event.offsetX - x * k));
    this.svg.call(this.zoom.transform, d3.zoomIdentity.translate(shift, 0).scale(k));
  }

  drawSpans() {
    const { x } = this;
    const [from, to] = x.domain();
    this.axis.call(d3.axisTop(x).ticks(Math.max(3, this.width / 130)).tickFormat((value) => microseconds(value)));
    const shown = [];
    for (const group of this.groups) {
      for (const lane of group.spans) {
        let drawn = -Infinity;  // What is narrower than a pixel is drawn once a pixel.
        for (const span of lane) {
          if (span.end < from || span.begin > to) continue;
          const [a, b] = [x(span.begin), x(span.end)];
          if (b - drawn < 0.5) continue;
          drawn = Math.max(a + 0.5, b);
          shown.push({ ...span, group, a: Math.max(a, this.left - 9), b: Math.min(drawn, this.width + 9) });
        }
      }
    }
    const y = (one) => one.group.y + one.thread * LANE;
    const isPicked = (one) => this.picked && this.picked.group.variant === one.group.variant && this.picked.step === one.step;
    const boxes = this.world.selectAll('g').data(shown).join((enter) => {
      const g = enter.append('g').attr('class', 'span');
      g.append('rect').attr('height', LANE - 3).attr('rx', 2);
      g.append('text').attr('y', 15);
      return g;
    });
    boxes.attr('transform', (one) => `translate(${one.a},${y(one)})`);
    boxes.select('rect').attr('width', (one) => Math.max(0.5, one.b - one.a - (one.b - one.a > 3 ? 0.7 : 0)))
      .attr('fill', (one) => css(PLACE_COLORS[stepPlace(one.group.schedule.steps[one.step])]))
      .attr('fill-opacity', (one) => (isPicked(one) ? 1 : 0.75)).attr('stroke', (one) => (isPicked(one) ? css('--text') : 'none'));
    boxes.select('text').attr('x', 4).text((one) => {
      const room = Math.floor((one.b - one.a - 8) / 6.6);
      return room < 4 ? '' : shortened(stepName(one.group.schedule.steps[one.step]), room);
    });
    this.drawArrows(x);
  }

  // From the steps that wrote what the picked one reads, and to those that read what it writes.
  drawArrows(x) {
    const curves = [];
    if (this.picked) {
      const { group, step } = this.picked;
      const { steps } = group.schedule;
      const own = (index) => group.spans[0].filter((span) => span.step === index);
      const add = (writer, reader, colour) => {
        const [a, b] = [own(writer).pop(), own(reader)[0]];
        if (a && b) curves.push({ from: x(a.end), to: x(b.begin), y: group.y, colour });
      };
      for (const writer of steps[step].reads) add(writer, step, '--accent');
      steps.forEach(({ reads }, reader) => reads.includes(step) && add(step, reader, '--bad'));
    }
    const arc = ({ from, to, y }) => {
      const [start, end] = [y + LANE - 4, y + LANE - 4];
      const dip = 14 + Math.min(26, Math.abs(to - from) / 12);
      return `M${from},${start}C${from},${start + dip} ${to},${end + dip} ${to},${end}m-4,6l4,-6l4,6`;
    };
    this.arrows.selectAll('path').data(curves).join('path').attr('class', 'arrow').attr('d', arc).attr('fill', 'none').attr('stroke-width', 1.8).attr('stroke', (one) => css(one.colour)).attr('pointer-events', 'none');
  }

  pick(span) {
    this.picked = span ? { group: span.group, step: span.step } : null;
    this.drawSpans();
    const name = span && span.group.schedule.steps[span.step].node;
    if (name) app.select(name);
  }

  hover(span, event) {
    if (!span) {
      tooltip.hide();
      return;
    }
    const { steps } = span.group.schedule;
    const step = steps[span.step];
    const names = (list) => list.map((index) => stepName(steps[index])).join(', ');
    const readers = steps.map((_, i) => i).filter((i) => steps[i].reads.includes(span.step));
    const wholes = span.group.spans.flat().filter((one) => one.step === span.step);
    const duration = d3.max(wholes, (one) => one.end) - d3.min(wholes, (one) => one.begin);
    tooltip.show(event, stepName(step), [`step ${span.step + 1} of ${steps.length}: ${step.op}, ${step.kernel}`,
      `thread ${span.thread}: ${microseconds(span.end - span.begin)} of the step's ${microseconds(duration)}, from ${microseconds(span.begin)}`,
      step.reads.length > 0 && `reads ${names(step.reads)}`, readers.length > 0 && `read by ${names(readers)}`]);
  }
}

// The arena of one schedule: steps from left to right, offsets upwards.
class MemoryView {
  constructor(model) {
    this.model = model;
    const all = model.variants.flatMap((variant) => variant.schedules.filter((one) => one.blocks.length > 0).map((schedule) => ({ variant, schedule })));
    // The main variant with the fewest threads.
    const main = model.variants[model.main];
    this.shown = all.find((one) => one.variant === main) || all[0];
    this.box = el('div', { id: 'memory-chart' });
    this.note = el('p', { class: 'muted', id: 'memory-note' });
    this.element = section('memory', 'Memory',
      el('div', { class: 'row' }, all.length > 1 && el('label', {}, el('span', { class: 'muted', text: 'arena of ' }), el('select', {
        onchange: (event) => { this.shown = all[Number(event.target.value)]; this.draw(); } },
      all.map((one, i) => el('option', { value: i, selected: one === this.shown, text: `${shortened(one.variant.name, 50)}, ${plural(one.schedule.threads, 'thread')}` }))))),
      this.note, this.box,
      el('p', { class: 'muted', text: 'Each box is a buffer: from the step that writes it to the last that reads it, at the place where the plan puts it. Hatched: what a kernel needs for itself. The line is what is alive, step by step; no plan takes less than its peak. The caller\'s inputs and outputs lie outside, and so do weights.' }));
  }

  start() {
    this.draw();
  }

  draw() {
    const { schedule } = this.shown;
    const { steps, blocks } = schedule;
    const alive = steps.map(() => 0);
    for (const block of blocks) for (let i = block.first; i <= block.last && i < alive.length; ++i) alive[i] += block.bytes;
    const peak = alive.indexOf(d3.max(alive));
    const sum = d3.sum(blocks, (block) => block.bytes);
    this.note.textContent = `${bytes(schedule.arena_bytes)} at batch ${schedule.batch} hold ${plural(blocks.length, 'buffer')} of ${bytes(sum)}; `
      + `at the peak, step ${peak + 1} (${shortened(stepName(steps[peak]), 60)}), ${bytes(alive[peak])} are alive.`;
    const width = Math.max(300, this.box.clientWidth || 900);
    const [height, left, right, top, bottom] = [380, 62, 10, 20, 34];
    const x = d3.scaleLinear([0, steps.length], [left, width - right]);
    const y = d3.scaleLinear([0, Math.max(schedule.arena_bytes, alive[peak])], [height - bottom, top]);
    const svg = d3.create('svg').attr('width', width).attr('height', height).attr('role', 'img').attr('aria-label', 'The arena over the steps');
    const hatch = svg.append('pattern').attr('id', 'memory-hatch').attr('width', 5).attr('height', 5).attr('patternUnits', 'userSpaceOnUse').attr('patternTransform', 'rotate(45)');
    hatch.append('rect').attr('width', 5).attr('height', 5).attr('fill', css('--none')).attr('opacity', 0.35);
    hatch.append('line').attr('y2', 5).attr('stroke', css('--muted')).attr('stroke-width', 2);
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(Math.max(3, Math.min(steps.length, width / 90))).tickFormat((v) => (Number.isInteger(v) ? String(v) : '')));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(6).tickFormat((v) => (v === 0 ? '0' : bytes(v))));
    svg.append('text').attr('class', 'caption').attr('x', width - right).attr('y', height - 4).attr('text-anchor', 'end').text('step');
    const boxes = svg.append('g').selectAll('rect').data(blocks).join('rect').attr('class', 'block').attr('x', (b) => x(b.first)).attr('width', (b) => Math.max(0.7, x(b.last + 1) - x(b.first) - 0.8))
      .attr('y', (b) => y(b.offset + b.bytes)).attr('height', (b) => Math.max(0.7, y(b.offset) - y(b.offset + b.bytes) - 0.8))
      .attr('fill', (b) => (b.scratch ? 'url(#memory-hatch)' : css(PLACE_COLORS[stepPlace(steps[b.writer])]))).attr('fill-opacity', (b) => (b.scratch ? 1 : 0.55)).attr('stroke', css('--card')).attr('stroke-width', 0.5);
    boxes.nodes().forEach((box) => {
      const block = box.__data__;
      const name = stepName(steps[block.writer]);
      box.addEventListener('click', () => steps[block.writer]?.node && app.select(steps[block.writer].node));
      box.addEventListener('mouseleave', () => tooltip.hide());
      box.addEventListener('mousemove', (event) => tooltip.show(event, block.scratch ? `scratch of ${name}` : name, [
        `${bytes(block.bytes)} at ${block.offset === 0 ? '0' : bytes(block.offset)}`, block.first === block.last ? `during step ${block.first + 1}` : `from step ${block.first + 1} to ${block.last + 1}, ${shortened(stepName(steps[block.last]), 60)}`]));
    });
    const line = d3.line().x((_, i) => x(i + 0.5)).y((v) => y(v)).curve(d3.curveStep);
    svg.append('path').attr('d', line(alive)).attr('fill', 'none').attr('stroke', css('--text')).attr('stroke-width', 1.4).attr('pointer-events', 'none');
    svg.append('line').attr('class', 'peak').attr('x1', x(peak + 0.5)).attr('x2', x(peak + 0.5)).attr('y1', top - 6).attr('y2', height - bottom).attr('stroke', css('--bad')).attr('stroke-dasharray', '3 3').attr('pointer-events', 'none');
    const text = `peak ${bytes(alive[peak])}`;
    const inRightHalf = peak > steps.length / 2;
    svg.append('text').attr('x', x(peak + 0.5) + (inRightHalf ? -5 : 5)).attr('y', top - 6).attr('text-anchor', inRightHalf ? 'end' : 'start').text(text);
    this.box.replaceChildren(svg.node(), placeLegend(new Set(blocks.filter((b) => !b.scratch).map((b) => stepPlace(steps[b.writer])))));
  }
}
