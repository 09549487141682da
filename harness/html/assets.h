// The files of the page, from the build.
#ifndef FUSELAGE_HARNESS_HTML_ASSETS_H_
#define FUSELAGE_HARNESS_HTML_ASSETS_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace fuselage::html {

struct Asset {
  absl::string_view name, text;
};

// In the order of the build's list.
std::vector<Asset> Assets();

}  // namespace fuselage::html

#endif  // FUSELAGE_HARNESS_HTML_ASSETS_H_
