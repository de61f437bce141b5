// The bubble of st_pipeline's schedules on two stages, as threads: stages that keep a core busy for a fixed time, and send 256 KiB at a
// time.
//
// Usage: pipeline_bubble [MILLISECONDS [ROUNDS]]    of a forward, an input gradient and a weight gradient each; needs two free cores
//
// A line for each schedule and number of micro-batches: the share of a run in which a stage waits, by closed form and measured (median,
// least and greatest of the rounds), and the run's time as a multiple of the closed form's.
#include <scaletrain/scaletrain.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kStages = 2;
constexpr int64_t kElements = 1 << 16;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void must(st_status status) {
  if (status == ST_OK) return;
  std::fprintf(stderr, "%s\n", st_last_error());
  std::exit(1);
}

struct Stage {
  double work;  // seconds of one action of all chunks
  int chunks;
};

st_status compute(void* user, const st_stage_work*) {
  const Stage& stage = *static_cast<const Stage*>(user);
  for (const double end = seconds() + stage.work / stage.chunks; seconds() < end;) continue;
  return ST_OK;
}

/// Seconds of each round, from the first stage's begin to the last one's end.
std::vector<double> rounds_of(const std::vector<st_communicator*>& ranks, const char* schedule, int chunks, int micro_batches, double work,
                              int rounds, std::string& json) {
  std::vector<double> began(static_cast<size_t>(kStages * rounds)), ended(began.size());
  std::vector<std::thread> threads;
  for (int s = 0; s < kStages; ++s)
    threads.emplace_back([&, s] {
      st_pipeline_callbacks callbacks;
      must(st_pipeline_callbacks_init(&callbacks, sizeof callbacks));
      callbacks.forward = callbacks.backward_input = callbacks.backward_weight = compute;
      Stage stage{work, chunks};
      const std::vector<st_op_type> types(static_cast<size_t>(chunks), {ST_F32, 1, {kElements}});
      st_pipeline* pipeline = nullptr;
      st_communicator* const own = ranks[static_cast<size_t>(s)];
      must(st_pipeline_create(own, schedule, chunks, types.data(), types.data(), &callbacks, &stage, &pipeline));
      for (int round = -1; round < rounds; ++round) {  // the first makes the buffers
        must(st_communicator_barrier(own, nullptr, nullptr));
        const double begin = seconds();
        must(st_pipeline_run(pipeline, micro_batches));
        if (round < 0) continue;
        began[static_cast<size_t>(round * kStages + s)] = begin;
        ended[static_cast<size_t>(round * kStages + s)] = seconds();
      }
      const char* facts = nullptr;
      must(st_pipeline_schedule(pipeline, micro_batches, &facts));
      if (s == 0) json = facts;
      must(st_pipeline_destroy(pipeline));
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto at = static_cast<std::ptrdiff_t>(round) * kStages;
    times.push_back(*std::max_element(ended.begin() + at, ended.begin() + at + kStages) -
                    *std::min_element(began.begin() + at, began.begin() + at + kStages));
  }
  std::sort(times.begin(), times.end());
  return times;
}

double bubble_in(const std::string& json) { return std::atof(json.c_str() + json.find("\"bubble\":") + 9); }

}  // namespace

int main(int count, char** arguments) {
  const double work = (count > 1 ? std::atof(arguments[1]) : 4) / 1e3;
  const int rounds = count > 2 ? std::atoi(arguments[2]) : 9;
  st_context* context = nullptr;
  must(st_context_create(nullptr, &context));
  std::vector<st_communicator*> ranks(kStages);
  must(st_communicator_local(context, kStages, nullptr, ranks.data()));
  std::printf("schedule     micro-batches  bubble: form  median   least  greatest  time/form\n");
  for (const auto& [schedule, chunks] :
       std::initializer_list<std::pair<const char*, int>>{{"gpipe", 1}, {"1f1b", 1}, {"interleaved", 2}, {"zb-h1", 1}, {"zb-v", 2}})
    for (const int m : {2, 4, 8, 16}) {
      std::string json;
      const std::vector<double> times = rounds_of(ranks, schedule, chunks, m, work, rounds, json);
      const double ideal = 3 * work * m, form = bubble_in(json);
      const auto bubble = [&](double time) { return 100 * (1 - ideal / time); };
      const double median = times[times.size() / 2];
      std::printf("%-12s %13d  %11.1f%%  %5.1f%%  %5.1f%%  %7.1f%%  %9.3f\n", schedule, m, 100 * form, bubble(median),
                  bubble(times.front()), bubble(times.back()), median * (1 - form) / ideal);
    }
  for (st_communicator* rank : ranks) must(st_communicator_destroy(rank));
  must(st_context_destroy(context));
}
