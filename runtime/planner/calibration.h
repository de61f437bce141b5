// Measures this machine for the planner: how long the instructions of training steps take, alone and next to other ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "planner/measured_steps.h"
#include "planner/target_machine.h"

namespace st {

struct CalibrationOptions {
  double seconds = 40;    // for measuring, about; each choice runs at least a few steps
  bool is_quick = false;  // small models only, in few settings
  std::string library;    // the version of this library, kept with the result
};

/// The steps that are measured, for ranks of so many threads; public so that predictions can be tested on others.
std::vector<StepChoice> calibration_steps(int32_t threads, int32_t ranks, bool is_quick);

/// Trains small built-in models on made-up rows and fits rates to the times of their instructions, in three settings: one rank with all of
/// the context's threads, one rank with one thread, and as many ranks as cores (2 to 8), as threads of this process.
///   memory   up to about 2 GB on two cores; the more cores, the more ranks
///   times    the median of each instruction's, in rounds over models and settings, so that a slower time of the machine is in all;
///            a collective's is the shortest of the rank that came last
/// Steps that there is no memory for are left out. Throws cancelled if the context was.
Machine calibrate(const std::shared_ptr<Context>& context, const CalibrationOptions& options);

/// "by version 1.2.3, this is 1.2.4": another version of the library measured the machine. Empty: this one did, or it was not measured.
std::string differs_by_version(const Machine& machine, std::string_view library);
/// Why the rates of a machine do not hold here: measured by another version, on another processor or with other kernels; empty: they do, or
/// it is a machine from a data sheet.
std::string differs_from_here(const Machine& machine, const Context& context, std::string_view library);

}  // namespace st
