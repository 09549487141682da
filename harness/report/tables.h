// The tables that a run ends with, from its results alone.
#ifndef FUSELAGE_HARNESS_REPORT_TABLES_H_
#define FUSELAGE_HARNESS_REPORT_TABLES_H_

#include <string>

#include "harness/results.pb.h"

namespace fuselage::report {

std::string PassesTable(const Results& results);
std::string AccuracyTable(const Results& results);
std::string LatencyTable(const Results& results);
// Bytes moved, and the roofline's prediction beside what was measured, on the fewest threads that were.
std::string RooflineTable(const Results& results);
// The `count` slowest layers of the last variant that has any.
std::string LayersTable(const Results& results, int count);
std::string GatesTable(const Results& results);
// explain_tables.cc: the graphs of print_graphs; remarks and placements of the command `explain`.
std::string GraphTables(const Results& results);
std::string ExplanationTables(const Results& results);

// A line each, escaped.
std::string WarningLines(const Results& results);

// All that have rows, with what they are about above them; where the run broke off, that first.
std::string Report(const Results& results, int slowest_layers);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_TABLES_H_
