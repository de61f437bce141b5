#include "guard.h"
#include "optimizer_objects.h"
#include "recipe/schedule_choice.h"

using namespace st;
using namespace st::capi;

st_status st_schedule_create(const char* json, st_schedule** schedule) {
  return guard([&] {
    given(schedule, "st_schedule_create: schedule");
    hand_out(schedule, std::make_shared<ScheduleObject>(schedule_from(json == nullptr ? "" : json)));
  });
}

st_status st_schedule_destroy(st_schedule* schedule) { return drop(schedule); }

st_status st_schedule_at(st_schedule* schedule, int64_t step, double* lr) {
  return guard([&] {
    check(step >= 0, "st_schedule_at: step is ", step, "; give the number of successful steps so far, 0 or more");
    const auto object = find(schedule);
    given(lr, "st_schedule_at: lr") = object->schedule.at(step);
  });
}
