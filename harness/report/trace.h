// trace.json: the schedules of a run in Chrome's trace event format, for Perfetto and chrome://tracing
// ("Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#ifndef FUSELAGE_HARNESS_REPORT_TRACE_H_
#define FUSELAGE_HARNESS_REPORT_TRACE_H_

#include <string>

#include "harness/results.pb.h"

namespace fuselage::report {

// A process for each schedule of a variant, its threads as threads, the spans as slices; an arrow goes from each step
// that writes a value to those that read it. Time is in microseconds.
std::string Trace(const Results& results);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_TRACE_H_
