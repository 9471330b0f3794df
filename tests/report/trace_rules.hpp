// What trace.json must hold for Perfetto to show all of it, and as it is meant. Rules and sources:
//  - an object with "traceEvents", each event with "ph", "pid", "tid" and, unless it is metadata,
//    "ts" in microseconds from 0 on; "displayTimeUnit" is "ms" or "ns" (Trace Event Format);
//  - slices (X, with "dur") of a thread nest or lie apart: what partly overlaps another is dropped,
//    slice_drop_overlapping_complete_event (perfetto.dev: FAQ, external trace formats);
//  - times are rounded to whole nanoseconds (trace processor's JSON importer), so slices need one
//    at least, or several at one time stack;
//  - counters have numbers in "args"; names of processes and threads are strings in
//    "args"."name", their order is "args"."sort_index";
//  - a thread whose number is its process's is the main one, and 0 is an idle processor.
// Ours, beyond: no two slices of a thread overlap, as none of ours calls another; every thread
// with slices, and its process, has a name and a place; a thread's number is of one process only.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet::test {

/// One line per rule broken, with the first event that does and how many do; empty is right.
std::vector<std::string> trace_violations(const nlohmann::json& trace);

} // namespace monet::test
