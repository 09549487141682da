// report.html: results as a page to look at. One file: style, scripts and data are inside, and nothing is loaded.
#ifndef FUSELAGE_HARNESS_HTML_HTML_H_
#define FUSELAGE_HARNESS_HTML_HTML_H_

#include <string>

#include "harness/results.pb.h"

namespace fuselage::html {

// The page of `results`, beside those of `before` where that is not null. Where the build found no D3 or dagre
// (third_party/javascript), the page says so, and nothing else.
//
// A name in the results is text everywhere: it reaches the page as JSON in a block that no browser runs, and the page's
// Content-Security-Policy lets nothing run but the scripts whose digests it lists.
std::string Page(const Results& results, const Results* before = nullptr);

}  // namespace fuselage::html

#endif  // FUSELAGE_HARNESS_HTML_HTML_H_
