// May a pass change what a node computes? Sharing is checked at both levels: the value, and the module behind it.
#ifndef FUSELAGE_IR_MATCH_SHARING_H_
#define FUSELAGE_IR_MATCH_SHARING_H_

#include <string>

#include "ir/graph.h"

namespace fuselage::match {

// Why `producer`'s value is not `user`'s alone, for a remark; empty where it is:
//   "%conv is also read by %add", "%conv is a graph output", "module @conv is also called by %conv_1".
std::string SharedBesides(const ir::Node& producer, const ir::Node& user);

// The second half alone: why the module that `call` calls is not its alone. Empty for calls that are no call_module.
std::string SharedModule(const ir::Node& call);

}  // namespace fuselage::match

#endif  // FUSELAGE_IR_MATCH_SHARING_H_
