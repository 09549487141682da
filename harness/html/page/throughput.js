'use strict';
// What several sessions at once serve: all busy, and latency under load.

class ThroughputView {
  constructor(model) {
    this.rows = model.variants.flatMap((variant, i) => (variant.throughput || []).map((one) => ({ variant, i, one })));
    this.box = el('div', { class: 'multiples' });
    this.element = section('throughput', 'Throughput', this.table(), el('h3', { text: 'Latency under load' }), this.box,
      el('p', { class: 'muted', text: 'Requests arrive at random times; latency counts from the arrival. Solid: the median and, above it, the 99th percentile. Dashed: the same of a queue whose every request takes the mean time exactly, which no server with this throughput can undercut.' }));
  }

  table() {
    const columns = [
      ['variant', (r) => shortened(r.variant.name, 60), 'text'], ['streams', (r) => r.one.streams], ['threads each', (r) => r.one.threads], ['batch', (r) => r.one.batch],
      ['a second, all busy', (r) => digits(r.one.images_per_second, r.one.images_per_second < 100 ? 1 : 0)], ['over one stream', (r) => times(number(r.one.scaling))],
    ];
    return el('div', { class: 'scroll free' }, el('table', { 'aria-label': 'Throughput' },
      el('thead', {}, el('tr', {}, columns.map(([title, , kind]) => el('th', { class: kind || '', text: title })))),
      el('tbody', {}, this.rows.map((row) => el('tr', {}, columns.map(([, cell, kind]) => el('td', { class: kind || '', text: cell(row) })))))));
  }

  start() {
    this.draw();
  }

  draw() {
    this.box.replaceChildren(...this.rows.filter((row) => (row.one.loads || []).length > 0).map((row) => this.one(row)));
  }

  one({ variant, i, one }) {
    const title = `${shortened(variant.name, 40)}, ${plural(one.streams, 'stream')}`;
    const width = columnWidth(this.box);
    const [height, left, right, top, bottom] = [240, 48, 16, 18, 36];
    const loads = [...one.loads].sort((a, b) => a.percent - b.percent);
    const all = loads.flatMap((load) => [load.latency_ms.median, load.latency_ms.p99, load.queue_ms.median, load.queue_ms.p99]);
    const x = d3.scaleLinear([0, Math.max(100, loads[loads.length - 1].percent)], [left, width - right]);
    const y = d3.scaleLog([d3.min(all) / 1.2, d3.max(all) * 1.2], [height - bottom, top]);
    const svg = d3.create('svg').attr('width', width).attr('height', height).attr('role', 'img').attr('aria-label', `Latency under load, ${title}`);
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(5));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(4, '~g'));
    svg.append('text').attr('class', 'caption').attr('x', width - right).attr('y', height - 5).attr('text-anchor', 'end').text('load, percent of the most that is served');
    svg.append('text').attr('class', 'caption').attr('x', 4).attr('y', 11).text('ms');
    const colour = d3.schemeTableau10[i % 10];
    for (const [of, dash] of [['queue_ms', '4 3'], ['latency_ms', null]]) {
      for (const figure of ['median', 'p99']) {
        svg.append('path').attr('d', d3.line().x((load) => x(load.percent)).y((load) => y(load[of][figure]))(loads)).attr('fill', 'none').attr('stroke', colour)
          .attr('stroke-width', figure === 'median' ? 2 : 1.3).attr('stroke-dasharray', dash).attr('opacity', dash ? 0.6 : 1);
      }
    }
    const points = loads.flatMap((load) => ['median', 'p99'].map((figure) => ({ load, figure })));
    const dots = svg.append('g').selectAll('circle').data(points).join('circle').attr('cx', (p) => x(p.load.percent)).attr('cy', (p) => y(p.load.latency_ms[p.figure])).attr('r', 4).attr('fill', colour);
    dots.nodes().forEach((dot) => {
      const { load } = dot.__data__;
      dot.addEventListener('mouseleave', () => tooltip.hide());
      dot.addEventListener('mousemove', (event) => tooltip.show(event, `${title}, load ${load.percent} %`, [`${plural(load.requests, 'request')}, ${digits(load.requests_per_second, 1)} a second`,
        `median ${ms(load.latency_ms.median)} ms, p90 ${ms(load.latency_ms.p90)}, p99 ${ms(load.latency_ms.p99)}, longest ${ms(load.max_ms)}`,
        `a queue alone: median ${ms(load.queue_ms.median)} ms, p99 ${ms(load.queue_ms.p99)}`]));
    });
    return el('div', {}, el('h3', { text: title }), svg.node());
  }
}
