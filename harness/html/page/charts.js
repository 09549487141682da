'use strict';
// The roofline, latency distributions, and the time of the run's phases.

class RooflineView {
  constructor(model) {
    this.model = model;
    this.box = el('div', { id: 'roofline-chart' });
    this.shown = new Set(model.variants.map((_, i) => i).filter((i) => model.layers[i].some((layer) => layer.intensity > 0)));
    this.element = section('roofline', 'Roofline',
      el('div', { class: 'row' }, [...this.shown].map((i) => el('button', {
        type: 'button', text: shortened(model.variants[i].name, 60), 'aria-pressed': 'true', onclick: (event) => {
          const on = !this.shown.delete(i);
          if (on) this.shown.add(i);
          event.currentTarget.setAttribute('aria-pressed', String(on));
          this.draw();
        },
      }))),
      this.box, this.predictions(),
      el('p', { class: 'muted', text: 'Each point is a layer, as large as its share of the time: operations a second over operations a byte, below what one thread of this machine can do. Far below the roof there is time to gain; a point on the slope waits for memory. Above it lie layers that caches feed, and Winograd convolutions, which multiply less than is counted.' }));
  }

  // Measured beside predicted, for the whole network on the fewest threads.
  predictions() {
    const rows = this.model.variants.flatMap((variant) => variant.measurements.filter((m) => number(m.predicted_ms) !== null).map((m) => ({ variant, m })));
    if (rows.length === 0) return null;
    return el('div', {}, el('h3', { text: 'The whole network: predicted and measured' }), el('div', { class: 'scroll free' }, el('table', {},
      el('thead', {}, el('tr', {}, ['variant', 'batch', 'predicted, ms', 'measured, ms', 'measured / predicted'].map((title, i) => el('th', { class: i ? '' : 'text', text: title })))),
      el('tbody', {}, rows.map(({ variant, m }) => el('tr', {}, el('td', { class: 'text', text: shortened(variant.name, 60) }), el('td', { text: m.batch }), el('td', { text: ms(m.predicted_ms) }),
        el('td', { text: ms(m.latency_ms.median) }), el('td', { text: times(m.latency_ms.median / m.predicted_ms) })))))));
  }

  start() {
    this.draw();
  }

  draw() {
    const { peaks } = this.model;
    const points = [...this.shown].flatMap((i) => this.model.layers[i].filter((layer) => layer.intensity > 0 && layer.operations > 0 && layer.ms > 0)
      .map((layer) => ({ layer, i, x: layer.intensity, y: layer.operations / layer.ms / 1e6 })));
    if (!peaks || points.length === 0) {
      this.box.replaceChildren(el('p', { class: 'muted', text: 'Nothing to show.' }));
      return;
    }
    const width = Math.max(300, this.box.clientWidth || 900);
    const [height, left, right, top, bottom] = [420, 56, 16, 18, 40];
    const roofs = [['INT8', peaks.int8_ops_per_second / 1e9, '--int8'], ['FP32', peaks.f32_flops_per_second / 1e9, '--fp32']];
    const memory = peaks.bytes_per_second / 1e9;
    const xs = d3.extent(points, (p) => p.x);
    const x = d3.scaleLog([Math.min(xs[0], 0.5) / 1.3, Math.max(xs[1] * 1.5, (2 * roofs[0][1]) / memory)], [left, width - right]);
    const y = d3.scaleLog([(d3.min(points, (p) => p.y) || 0.1) / 1.5, Math.max(roofs[0][1], d3.max(points, (p) => p.y)) * 1.7], [height - bottom, top]);
    const svg = d3.create('svg').attr('width', width).attr('height', height).attr('role', 'img').attr('aria-label', 'Roofline');
    const marks = (scale) => scale.ticks().filter((value) => /^[125]$/.test(value.toExponential()[0]));
    const plain = (value) => (value >= 1 ? d3.format(',')(value) : String(Number(value.toPrecision(2))));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`).call(d3.axisBottom(x).tickValues(marks(x)).tickFormat(plain));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).tickValues(marks(y)).tickFormat(plain));
    svg.append('text').attr('class', 'caption').attr('x', width - right).attr('y', height - 6).attr('text-anchor', 'end').text('operations per byte');
    svg.append('text').attr('class', 'caption').attr('x', 4).attr('y', 11).text('GOP/s');
    const [x0, x1] = x.domain();
    const inside = (value) => Math.max(y.domain()[0], Math.min(y.domain()[1], value));
    const labels = d3.create('svg:g').attr('class', 'above');
    for (const [name, peak, colour] of roofs) {
      const ridge = Math.max(x0, peak / memory);
      const low = Math.max(x0, y.domain()[0] / memory);
      svg.append('path').attr('d', d3.line()([[x(low), y(inside(low * memory))], [x(Math.min(ridge, x1)), y(inside(Math.min(ridge, x1) * memory))], [x(x1), y(inside(Math.min(peak, x1 * memory)))]]))
        .attr('fill', 'none').attr('stroke', css(colour)).attr('stroke-width', 2.2);
      labels.append('text').attr('x', width - right - 4).attr('y', y(inside(peak)) - 6).attr('text-anchor', 'end').text(`${name} ${digits(peak, 0)} GOP/s`);
    }
    const onSlope = Math.sqrt(Math.max(x0, y.domain()[0] / memory) * Math.min(x1, roofs[1][1] / memory));
    labels.append('text').attr('class', 'caption').attr('x', x(onSlope) + 10).attr('y', y(inside(onSlope * memory)) + 14).text(`memory ${digits(memory, 1)} GB/s`);
    const shapes = [d3.symbolCircle, d3.symbolDiamond, d3.symbolTriangle, d3.symbolSquare];
    const dots = svg.append('g').selectAll('path').data(points).join('path').attr('class', 'point')
      .attr('d', (p) => d3.symbol().type(shapes[p.i % 4]).size(36 + 2400 * (p.layer.share || 0))()).attr('transform', (p) => `translate(${x(p.x)},${y(p.y)})`)
      .attr('fill', (p) => css(PLACE_COLORS[p.layer.place])).attr('fill-opacity', 0.55).attr('stroke', css('--card')).attr('stroke-width', 0.8);
    dots.nodes().forEach((dot) => {
      const { layer, y: rate } = dot.__data__;
      dot.style.cursor = 'pointer';
      dot.addEventListener('click', () => app.select(layer.name, { reveal: false }));
      dot.addEventListener('mouseleave', () => tooltip.hide());
      dot.addEventListener('mousemove', (event) => tooltip.show(event, layer.label, [`${layer.variant}: ${layer.op}, ${layer.kernel}`, `${digits(rate, 1)} GOP/s at ${digits(layer.intensity, 1)} operations a byte`,
        `${ms(layer.ms)} ms measured, ${ms(layer.roofMs)} ms allowed: ${percent(layer.roofShare)} of the roof`]));
    });
    svg.append(() => labels.node());
    this.box.replaceChildren(svg.node(), el('div', { class: 'legend' }, [...this.shown].map((i) => el('span', { text: `${['●', '◆', '▲', '■'][i % 4]} ${shortened(this.model.variants[i].name, 60)}` }))));
  }
}

// How much faster than the baseline each variant and peer is, by medians; a group for each batch and number of threads.
class SpeedupView {
  constructor(model) {
    this.model = model;
    this.box = el('div', { id: 'speedup-chart' });
    this.element = section('speedup', 'Speedup', this.box,
      el('p', { class: 'muted', text: 'Median over median, at the same batch and number of threads; all took turns in one run.' }));
  }

  // [[title, [{name, peer, speedup}]]] of what was measured beside the baseline.
  static groups(model) {
    const groups = new Map();
    const [base, ...others] = model.variants;
    const all = [...others.map((variant) => ({ variant, peer: false })), ...model.peers.map((variant) => ({ variant, peer: true }))];
    for (const b of base ? base.measurements : []) {
      const rows = all.flatMap(({ variant, peer }) => {
        const m = variant.measurements.find((one) => one.batch === b.batch && one.threads === b.threads);
        return m && number(b.speedup) !== null ? [{ name: variant.name, peer, speedup: b.latency_ms.median / m.latency_ms.median }] : [];
      });
      if (rows.length > 0) groups.set(`batch ${b.batch}, ${plural(b.threads, 'thread')}`, rows);
    }
    return [...groups];
  }

  start() {
    this.draw();
  }

  draw() {
    const groups = SpeedupView.groups(this.model);
    const width = Math.min(900, Math.max(300, this.box.clientWidth || 900));
    const label = (row) => shortened(row.name, 24);
    const [rowHeight, gap, top, right] = [22, 26, 8, 52];
    const left = 12 + 7.2 * d3.max(groups, ([, rows]) => d3.max(rows, (row) => label(row).length));
    const height = top + d3.sum(groups, ([, rows]) => rows.length * rowHeight + gap) + 22;
    const x = d3.scaleLinear([0, Math.max(1.2, d3.max(groups, ([, rows]) => d3.max(rows, (row) => row.speedup)))], [left, width - right]);
    const svg = d3.create('svg').attr('width', width).attr('height', height).attr('role', 'img').attr('aria-label', `Speedup over ${this.model.variants[0].name}`);
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - 22})`).call(d3.axisBottom(x).ticks(Math.min(5, (width - left) / 60)).tickFormat((value) => `${value}×`));
    let y = top;
    for (const [title, rows] of groups) {
      svg.append('text').attr('class', 'strong').attr('x', 4).attr('y', y + 13).text(title);
      y += 18;
      for (const row of rows) {
        svg.append('text').attr('x', left - 6).attr('y', y + 14).attr('text-anchor', 'end').text(label(row));
        svg.append('rect').attr('class', 'speedup').attr('x', left).attr('width', Math.max(1, x(row.speedup) - left)).attr('y', y + 2).attr('height', rowHeight - 5).attr('rx', 2)
          .attr('fill', css(row.peer ? '--none' : '--int8'));
        svg.append('text').attr('x', x(row.speedup) + 5).attr('y', y + 14).text(times(row.speedup));
        y += rowHeight;
      }
      y += gap - 18;
    }
    svg.append('line').attr('x1', x(1)).attr('x2', x(1)).attr('y1', top).attr('y2', height - 22).attr('stroke', css('--fp32')).attr('stroke-dasharray', '4 3');
    svg.append('text').attr('class', 'caption above').attr('x', width - right).attr('y', 12).attr('text-anchor', 'end').text(`times ${shortened(this.model.variants[0].name, 24)} (dashed)`);
    this.box.replaceChildren(svg.node());
  }
}

// Every run that was timed, as small multiples with one scale for each.
class LatencyView {
  constructor(model) {
    this.model = model;
    this.box = el('div', { class: 'multiples' });
    this.element = section('latency', 'Latency distributions', this.box,
      el('p', { class: 'muted', text: 'Each mark is a run, in the order of the runs from left to right; the line is the median, the band holds the middle half. Steps and slopes are the machine\'s doing: a change of clock, or of company.' }));
  }

  start() {
    this.draw();
  }

  groups() {
    const groups = new Map();
    for (const variant of [...this.model.variants, ...this.model.peers]) {
      for (const m of variant.measurements) {
        if (!m.samples_ms || m.samples_ms.length === 0) continue;
        const key = `batch ${m.batch}, ${plural(m.threads, 'thread')}`;
        if (!groups.has(key)) groups.set(key, []);
        groups.get(key).push({ variant, m });
      }
    }
    return groups;
  }

  draw() {
    this.box.replaceChildren(...[...this.groups()].map(([title, rows]) => this.one(title, rows)));
  }

  one(title, rows) {
    const width = columnWidth(this.box);
    const rowHeight = 86;
    const left = 44;
    const svg = d3.create('svg').attr('width', width).attr('height', rows.length * rowHeight + 4).attr('role', 'img').attr('aria-label', `Latency, ${title}`);
    rows.forEach(({ variant, m }, i) => {
      const samples = m.samples_ms;
      const sorted = [...samples].sort(d3.ascending);
      const split = width - 110;
      const most = d3.quantile(sorted, 0.99);
      const [low, high] = [sorted[0], Math.max(most, sorted[0] * 1.02)];
      const pad = (high - low) * 0.06;
      const y = d3.scaleLinear([low - pad, high + pad], [rowHeight - 8, 20]).clamp(true);
      const x = d3.scaleLinear([0, samples.length], [left + 6, split]);
      const g = svg.append('g').attr('transform', `translate(0,${i * rowHeight})`);
      const colour = d3.schemeTableau10[this.model.variants.indexOf(variant)] || css('--none');
      g.append('text').attr('x', left + 6).attr('y', 13).text(`${shortened(variant.name, 24)}: ${ms(m.latency_ms.median)} ms, ${plural(m.repetitions, 'run')}`);
      g.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(3));
      const [q1, q2, q3] = [0.25, 0.5, 0.75].map((q) => d3.quantile(sorted, q));
      g.append('rect').attr('x', left + 6).attr('width', split - left - 6).attr('y', y(q3)).attr('height', Math.max(1, y(q1) - y(q3))).attr('fill', colour).attr('opacity', 0.15);
      g.append('line').attr('x1', left + 6).attr('x2', split).attr('y1', y(q2)).attr('y2', y(q2)).attr('stroke', colour);
      g.append('g').selectAll('circle').data(samples).join('circle').attr('cx', (_, k) => x(k + 0.5)).attr('cy', (v) => y(v)).attr('r', samples.length > 150 ? 1.3 : 2).attr('fill', colour).attr('opacity', 0.75);
      // The same marks as a histogram, turned on its side.
      const bins = d3.histogram ? d3.histogram() : d3.bin();
      const counted = bins.domain(y.domain()).thresholds(24)(samples.map((v) => Math.min(v, y.domain()[1])));
      const w = d3.scaleLinear([0, d3.max(counted, (bin) => bin.length)], [0, 92]);
      g.append('g').selectAll('rect').data(counted).join('rect').attr('x', split + 8).attr('width', (bin) => w(bin.length)).attr('y', (bin) => y(bin.x1) + 0.5)
        .attr('height', (bin) => Math.max(0, y(bin.x0) - y(bin.x1) - 1)).attr('fill', colour).attr('opacity', 0.75);
    });
    return el('div', {}, el('h3', { text: title }), svg.node());
  }
}

function runSection(model) {
  const { phases, config_text: config } = model.results;
  const longest = d3.max(phases, (phase) => phase.seconds) || 1;
  const rows = phases.map((phase) => {
    const bar = el('span', { class: 'bar' });
    bar.style.width = `${(100 * phase.seconds) / longest}%`;
    return el('tr', {}, el('td', { class: 'text', text: visible(phase.name) }), el('td', { text: `${digits(phase.seconds, 2)} s` }), el('td', { class: 'text rest' }, bar));
  });
  return section('run', 'The run',
    phases.length > 0 && el('div', { class: 'scroll' }, el('table', { 'aria-label': 'Phases' }, el('tbody', {}, rows))),
    el('details', {}, el('summary', { text: 'The config, as run' }), el('pre', { text: config.replace(/[\u0000-\u0008\u000b-\u001f]/g, visible) })));
}
