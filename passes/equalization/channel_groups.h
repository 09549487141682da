// Which values of a graph have channels that can only be scaled together.
#ifndef FUSELAGE_PASSES_EQUALIZATION_CHANNEL_GROUPS_H_
#define FUSELAGE_PASSES_EQUALIZATION_CHANNEL_GROUPS_H_

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fuselage::equalization {

struct ChannelGroup {
  int64_t channels = 0;
  std::vector<ir::Node*> writers;  // Layers whose output channels are the group's, in the graph's order; or
  ir::Node* scaled = nullptr;      // what a conv2d's function makes, which a product can scale for nothing.
  std::vector<ir::Node*> readers;  // Layers whose input channels they are.
  struct Clamp {
    ir::Node* node;
    float max;
    int axis;  // Of the channels.
  };
  std::vector<Clamp> clamps;  // What bounds them at [0, max].
  std::string why_not;        // Why they cannot be scaled; empty where they can.
};

// A layer's weight is [output channels, input channels of one group, ...].
struct LayerShape {
  int64_t outputs, inputs_per_group, kernel, groups;
};
LayerShape ShapeOf(const ir::Node& layer);

// Groups with a reader, and a writer or what is scaled, in the order of these.
std::vector<ChannelGroup> FindChannelGroups(const ir::Graph& graph);

}  // namespace fuselage::equalization

#endif  // FUSELAGE_PASSES_EQUALIZATION_CHANNEL_GROUPS_H_
