'use strict';
// A graph of thousands of nodes by modules: neighbours whose names begin alike are one box, which a click opens.

const FOLD_FROM = 1000;  // Nodes; a smaller graph is drawn as it is.
const FOLD_TO = 250;     // Boxes at first, at most, unless names have fewer parts than that takes.

// The first parts of a name: both "layer1.0.conv1" and "/layer1/0/conv1/Conv" have layer1 as their first.
function prefixOf(name, parts) {
  let end = 0;
  for (let i = 0; i < parts; ++i) {
    const next = name.slice(end + 1).search(/[/.]/);
    if (next < 0) return name;
    end += 1 + next;
  }
  return name.slice(0, end);
}

// Neighbours in the order of the graph, so that boxes have an order too: no edge leads back.
function runsOf(nodes, parts) {
  const runs = [];
  for (const node of nodes) {
    const prefix = prefixOf(node.name, parts);
    const last = runs[runs.length - 1];
    if (last && last.prefix === prefix) last.members.push(node);
    else runs.push({ prefix, members: [node] });
  }
  return runs;
}

// Boxes for `nodes`: a node, or {name, title, members, ...} of several. `open`: names of boxes that were opened.
function boxesOf(nodes, parts, open) {
  return runsOf(nodes, parts).flatMap(({ prefix, members }) => {
    if (members.length === 1) return members;
    const name = `${parts}\u0000${members[0].name}`;
    if (!open.has(name)) {
      return [{ name, title: prefix, members, kind: 'module', op: `${members.length} nodes`, target: '', type: '', inputs: members.flatMap((member) => member.inputs),
                sources: [], change: members.some((member) => member.change) ? 'changed' : '' }];
    }
    let deeper = parts + 1;
    while (runsOf(members, deeper).length === 1) ++deeper;
    return boxesOf(members, deeper, open);
  });
}

// What is drawn of a step: itself, or the same with boxes.
function folded(step, open) {
  const nodes = drawnNodes(step);
  if (nodes.length < FOLD_FROM) return step;
  let parts = 1;
  while (runsOf(nodes, parts + 1).length <= FOLD_TO && parts < 20) ++parts;
  const boxes = boxesOf(nodes, parts, open);
  const owner = new Map(boxes.flatMap((box) => (box.members || [box]).map((member) => [member.name, box.name])));
  return { ...step, nodes: boxes.map((box) => ({ ...box, inputs: [...new Set(box.inputs.map((input) => owner.get(input)))].filter((input) => input !== undefined && input !== box.name) })) };
}
