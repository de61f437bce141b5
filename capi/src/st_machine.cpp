#include <scaletrain/library.h>
#include <scaletrain/machine.h>

#include "context_object.h"
#include "guard.h"
#include "models/json_options.h"
#include "planner/calibration.h"
#include "thread_text.h"

using namespace st;
using namespace st::capi;

st_status st_machine_calibrate(st_context* context, const char* options, const char** machine) {
  return guard([&] {
    static ThreadText answer;
    constexpr double kMost = 600;
    const auto home = peek(context)->context;
    given(machine, "st_machine_calibrate: machine");
    CalibrationOptions ours;
    read_options("st_machine_calibrate: options", options == nullptr ? "" : options,
                 {{"seconds", &ours.seconds}, {"quick", &ours.is_quick}});
    check(ours.seconds >= 0 && ours.seconds <= kMost, "st_machine_calibrate: seconds must be 0 to ", kMost, ", got ", ours.seconds);
    const char* version = "";
    st_version(&version);
    ours.library = version;
    *machine = answer.keep(json_of(calibrate(home, ours)), "st_machine_calibrate");
  });
}
