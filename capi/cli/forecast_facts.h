// A trainer's forecast (st_trainer_forecast) for people: in the report of a run and in its trace.
#pragma once

#include "options.h"

namespace cli {

/// {"rank 1, computing": "4.1 ms predicted, 5 ms measured"}: of the three largest differences, the largest first.
Json largest_differences(const Json& forecast);
/// The report's table of predicted and measured step times.
Json forecast_facts(const Json& forecast);

}  // namespace cli
