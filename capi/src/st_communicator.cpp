#include <scaletrain/communicator.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/os/machine.h"
#include "checkpoint_choice.h"
#include "comm/direct_exchange.h"
#include "comm/local/process_group.h"
#include "comm/local/thread_group.h"
#include "comm/pipes/pipe_group.h"
#include "comm/plugins/callback_pipes.h"
#include "comm/plugins/transport_plugin.h"
#include "comm/rank_environment.h"
#include "comm/shared_transport.h"
#include "communicator_object.h"
#include "context_object.h"
#include "exchange.h"
#include "group_call.h"
#include "guard.h"
#include "host_loan.h"

using namespace st;
using namespace st::capi;

namespace {

st_communicator_options default_times() {
  st_communicator_options made{};
  made.deadline_milliseconds = made.start_milliseconds = 60000;
  return made;
}

struct Times {
  double deadline, start;  // seconds
};

Times times_given(const st_communicator_options* options, const char* call) {
  const st_communicator_options theirs = options == nullptr ? default_times() : take(options, text(call, ": options").c_str());
  const auto seconds = [&](int64_t milliseconds, const char* name) {
    check(milliseconds >= 1, call, ": ", name, " is ", milliseconds, "; give 1 or more");
    return static_cast<double>(milliseconds) / 1e3;
  };
  return {seconds(theirs.deadline_milliseconds, "deadline_milliseconds"), seconds(theirs.start_milliseconds, "start_milliseconds")};
}

/// Memory that ranks hold for each other, in a context's account for as long as the group exists.
class GroupMemory {
 public:
  GroupMemory(std::shared_ptr<MemorySource> source, int64_t bytes) : source_(std::move(source)), bytes_(bytes) {
    source_->account().add(MemoryRole::other, bytes_);
  }
  ~GroupMemory() { source_->account().add(MemoryRole::other, -bytes_); }
  GroupMemory(const GroupMemory&) = delete;
  GroupMemory& operator=(const GroupMemory&) = delete;

 private:
  const std::shared_ptr<MemorySource> source_;
  const int64_t bytes_;
};

/// The handles of one call: either the host gets all of them, or none.
class NewHandles {
 public:
  explicit NewHandles(size_t count) { made_.reserve(count); }
  NewHandles(const NewHandles&) = delete;
  NewHandles& operator=(const NewHandles&) = delete;
  ~NewHandles() {
    for (const st_communicator* one : made_) take_back(one);  // no one has seen it, so this cannot fail
  }
  void add(std::shared_ptr<CommunicatorObject> object) {
    st_communicator* handle = nullptr;
    hand_out(&handle, std::move(object));
    made_.push_back(handle);
  }
  void give(st_communicator** comms) {
    std::ranges::copy(made_, comms);
    made_.clear();
  }

 private:
  std::vector<st_communicator*> made_;
};

/// Wraps the communicator that make(options) returns. bytes(ranks): this rank's share of the ranks' common memory.
std::shared_ptr<CommunicatorObject> object_of(std::shared_ptr<Context> context, double deadline,
                                              const std::function<std::unique_ptr<Communicator>(const CommunicatorOptions&)>& make,
                                              const std::function<int64_t(const Communicator&)>& bytes) {
  auto object = std::make_shared<CommunicatorObject>();
  CommunicatorOptions options;
  options.deadline = deadline;
  options.is_cancelled = [&of = *object] {
    const bool is_asked = of.context->cancels() != of.cancels;
    const Trainer* at_step = of.at_step;
    return at_step == nullptr ? is_asked : at_step->ends_waits(is_asked);
  };
  options.warn = [log = context->options().log](const std::string& what) { log.warning("communicator", what); };
  object->cancels = context->cancels().load();
  object->context = std::move(context);
  object->queue.count_cancels(object->context->cancels(), object->cancels);
  object->ranks = make(options);
  const Communicator& at = *object->ranks;
  object->memory = std::make_shared<GroupMemory>(object->context->memory(), bytes(at));
  object->context->options().log.info("communicator", "rank ", at.rank(), " of ", at.size(), " by ", at.transport_name(), " (",
                                      at.host_of(at.rank()), "); the deadline is ", deadline, " s");
  return object;
}

std::shared_ptr<CommunicatorObject> join(std::shared_ptr<Context> context, std::unique_ptr<Transport> transport, double deadline,
                                         int64_t bytes = 0) {
  const auto make = [&](const CommunicatorOptions& options) { return std::make_unique<DirectExchange>(std::move(transport), options); };
  return object_of(std::move(context), deadline, make, [&](const Communicator&) { return bytes; });
}

/// A group that make(ranks, options, allow_single) makes of a communicator's ranks, which all make this call.
template <class Make>
void give_group(st_communicator* communicator, const st_communicator_options* options, const char* call, st_communicator** group,
                const Make& make) {
  given(group, text(call, ": group").c_str());
  const auto parent = find(communicator);
  st_communicator_options theirs{};
  if (options != nullptr) theirs = take(options, text(call, ": options").c_str());
  check(theirs.deadline_milliseconds >= 0, call, ": deadline_milliseconds is ", theirs.deadline_milliseconds, "; give 1 or more, or 0 for ",
        parent->ranks->deadline() * 1e3, ", as in the group that is split");
  const double deadline =
      theirs.deadline_milliseconds == 0 ? parent->ranks->deadline() : static_cast<double>(theirs.deadline_milliseconds) / 1e3;
  take_turn(*parent);
  NewHandles made(1);
  made.add(object_of(
      parent->context, deadline, [&](const CommunicatorOptions& ours) { return make(*parent->ranks, ours, theirs.allow_single != 0); },
      [&](const Communicator& ranks) { return SharedTransport::bytes_of_group(ranks.size(), ranks.size()); }));
  made.give(group);
}

std::shared_ptr<CommunicatorObject> join_processes(const std::shared_ptr<Context>& context, ProcessGroupOptions group, const Times& times) {
  group.patience = times.start;
  group.is_cancelled = cancelled_from_now(*context);
  auto transport = join_process_group(group);  // refuses an impossible size
  return join(context, std::move(transport), times.deadline, process_group_bytes(group.size));
}

/// nullopt: no launcher started this process, and the host accepts a single rank.
std::optional<RankEnvironment> launched_rank(const char* call, bool allow_single) {
  auto found = rank_environment([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
  require(
      found.has_value() || allow_single, Code::not_found, call,
      ": no launcher started this process: none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID is set; start it with "
      "`scaletrain launch -n 4 -- program`, allow a single rank (allow_single), or name the ranks yourself (st_communicator_processes)");
  return found;
}

/// "local" or a plug-in's name: the requested one, else chosen by where the ranks are.
std::string transport_for(const RankEnvironment& found) {
  const char* asked = std::getenv("SCALETRAIN_TRANSPORT");
  if (asked != nullptr && *asked != '\0') return asked;
  return found.local_size == found.size ? "local" : "gloo";
}

std::shared_ptr<CommunicatorObject> join_here(const std::shared_ptr<Context>& context, const RankEnvironment& found, const Times& times,
                                              const char* call) {
  check(found.local_size == found.size, call, ": SCALETRAIN_TRANSPORT is local, but ",
        found.local_size < 0 ? "an unknown number" : std::to_string(found.local_size), " of ", found.size,
        " ranks are on this host; use gloo or mpi");
  check(!found.job.empty(), call, ": nothing in the environment of ", found.source,
        " distinguishes this job from another one; set MASTER_PORT to a number that no other job uses");
  ProcessGroupOptions group;
  group.job = found.job;
  group.rank = found.rank;
  group.size = found.size;
  return join_processes(context, std::move(group), times);
}

/// Joins the ranks that the pipes reach, within what is left of a start that began at `began`.
std::shared_ptr<CommunicatorObject> join_pipes(const std::shared_ptr<Context>& context, std::unique_ptr<Pipes> pipes, const Times& times,
                                               double began, std::function<bool()> is_cancelled) {
  constexpr double kLeast = 1;  // once all pipes exist, a live rank answers well within this time
  PipeGroupOptions options;
  options.patience = std::max(std::min(kLeast, times.start), times.start - (os::seconds() - began));
  options.is_cancelled = std::move(is_cancelled);
  const int64_t bytes = pipe_group_bytes(pipes->size());
  return join(context, join_pipe_group(std::move(pipes), options), times.deadline, bytes);
}

std::shared_ptr<CommunicatorObject> join_by_plugin(const std::shared_ptr<Context>& context, const std::string& transport,
                                                   TransportPlugin::Start start, const Times& times) {
  start.patience = times.start;
  start.is_cancelled = cancelled_from_now(*context);
  const double began = os::seconds();
  return join_pipes(context, TransportPlugin(transport).open(start), times, began, start.is_cancelled);
}

TransportPlugin::Start launched_start(const RankEnvironment& found) {
  TransportPlugin::Start start;
  start.rank = found.rank;
  start.size = found.size;
  start.master_host = found.master_host;
  start.master_port = found.master_port;
  // torchrun's own store uses the port itself; take the next one.
  if (const char* store = std::getenv("TORCHELASTIC_USE_AGENT_STORE"); store != nullptr && std::string_view(store) == "True")
    start.master_port = found.master_port % 65535 + 1;
  return start;
}

}  // namespace

st_status st_communicator_options_init(st_communicator_options* options, size_t size) { return init(options, size, default_times()); }

st_status st_communicator_local(st_context* context, int32_t n, const st_communicator_options* options, st_communicator** comms) {
  return guard([&] {
    constexpr const char* kCall = "st_communicator_local";
    given(comms, "st_communicator_local: comms");
    const auto shared = peek(context)->context;  // first, so that allocations use its memory
    check(n >= 1 && n <= kMaxThreadRanks, kCall, ": n is ", n, "; it must be 1 to ", kMaxThreadRanks);
    const Times times = times_given(options, kCall);
    NewHandles made(static_cast<size_t>(n));
    for (auto& end : make_thread_group(n)) made.add(join(shared, std::move(end), times.deadline));
    made.give(comms);
  });
}

st_status st_communicator_processes(st_context* context, const char* job, int32_t rank, int32_t size,
                                    const st_communicator_options* options, st_communicator** communicator) {
  return guard([&] {
    constexpr const char* kCall = "st_communicator_processes";
    given(communicator, "st_communicator_processes: communicator");
    const auto shared = peek(context)->context;
    ProcessGroupOptions ours;
    ours.job = text_given(job, "st_communicator_processes: job");
    check(!ours.job.empty(), kCall, ": job is empty; give a name that all ranks of this group share");
    check(size >= 1, kCall, ": size is ", size, "; give 1 or more");
    check(rank >= 0 && rank < size, kCall, ": rank is ", rank, "; ranks are 0 to ", size - 1);
    ours.rank = rank;
    ours.size = size;
    hand_out(communicator, join_processes(shared, std::move(ours), times_given(options, kCall)));
  });
}

st_status st_communicator_env(st_context* context, const st_communicator_options* options, st_communicator** communicator) {
  return guard([&] {
    constexpr const char* kCall = "st_communicator_env";
    given(communicator, "st_communicator_env: communicator");
    const auto shared = peek(context)->context;
    const Times times = times_given(options, kCall);
    const auto found = launched_rank(kCall, options != nullptr && options->allow_single != 0);
    if (!found) return hand_out(communicator, join(shared, std::move(make_thread_group(1).front()), times.deadline));
    const std::string transport = transport_for(*found);
    hand_out(communicator, transport == "local" ? join_here(shared, *found, times, kCall)
                                                : join_by_plugin(shared, transport, launched_start(*found), times));
  });
}

st_status st_communicator_host(st_context* context, const char* transport, const void* group, const st_communicator_options* options,
                               st_communicator** communicator) {
  return guard([&] {
    constexpr const char* kCall = "st_communicator_host";
    given(communicator, "st_communicator_host: communicator");
    const auto shared = peek(context)->context;
    TransportPlugin::Start start;
    start.group = group;
    const std::string name = text_given(transport, "st_communicator_host: transport");
    hand_out(communicator, join_by_plugin(shared, name, std::move(start), times_given(options, kCall)));
  });
}

st_status st_communicator_callbacks(st_context* context, int32_t rank, int32_t size, const st_transport_callbacks* callbacks, void* user,
                                    const st_communicator_options* options, st_communicator** communicator) {
  return guard([&] {
    constexpr const char* kCall = "st_communicator_callbacks";
    given(communicator, "st_communicator_callbacks: communicator");
    const auto shared = peek(context)->context;
    st_transport_callbacks ours = take(callbacks, "st_communicator_callbacks: callbacks");
    check(size >= 1 && size <= kMostPipeRanks, kCall, ": size is ", size, "; it must be 1 to ", kMostPipeRanks);
    check(rank >= 0 && rank < size, kCall, ": rank is ", rank, "; ranks are 0 to ", size - 1);
    const Times times = times_given(options, kCall);
    auto loan = std::make_shared<HostLoan>(std::exchange(ours.release, nullptr), user);
    HostLoan& resource = *loan;  // owned by the pipes alone, so everything is released when the communicator's destroy returns
    auto pipes = make_callback_pipes("callbacks", rank, size, ours, user, std::move(loan));
    NewHandles made(1);
    made.add(join_pipes(shared, std::move(pipes), times, os::seconds(), cancelled_from_now(*shared)));
    resource.accept();
    made.give(communicator);
  });
}

st_status st_transport_callbacks_init(st_transport_callbacks* callbacks, size_t size) {
  return init(callbacks, size, st_transport_callbacks{});
}

st_status st_communicator_split(st_communicator* communicator, int32_t color, int32_t key, const st_communicator_options* options,
                                st_communicator** group) {
  return guard([&] {
    constexpr const char* kCall = "st_communicator_split";
    check(color >= 0, kCall, ": color is ", color, "; give 0 or more: ranks that give the same become a group");
    give_group(communicator, options, kCall, group, [&](Communicator& ranks, const CommunicatorOptions& ours, bool allow_single) {
      return ranks.split(color, key, ours, allow_single);
    });
  });
}

st_status st_communicator_duplicate(st_communicator* communicator, const st_communicator_options* options, st_communicator** group) {
  return guard([&] {
    give_group(communicator, options, "st_communicator_duplicate", group,
               [&](Communicator& ranks, const CommunicatorOptions& ours, bool) { return ranks.duplicate(ours); });
  });
}

st_status st_communicator_destroy(st_communicator* communicator) { return drop(communicator); }

st_status st_communicator_rank(st_communicator* communicator, int32_t* rank) {
  return guard([&] { given(rank, "st_communicator_rank: rank") = peek(communicator)->ranks->rank(); });
}

st_status st_communicator_size(st_communicator* communicator, int32_t* size) {
  return guard([&] { given(size, "st_communicator_size: size") = peek(communicator)->ranks->size(); });
}

st_status st_communicator_share(st_communicator* communicator, int64_t elements, int32_t rank, int64_t* begin, int64_t* count) {
  return guard([&] {
    constexpr const char* kCall = "st_communicator_share";
    int64_t& first = given(begin, "st_communicator_share: begin");
    int64_t& many = given(count, "st_communicator_share: count");
    const Use object(peek(communicator));
    const Communicator& ranks = *object->ranks;
    check(elements >= 0, kCall, ": elements is ", elements, "; give 0 or more");
    rank_given(ranks, "rank", rank, kCall);
    first = ranks.share(elements, rank);
    many = ranks.share(elements, rank + 1) - first;
  });
}

st_status st_communicator_abort(st_communicator* communicator, const char* reason) {
  return guard([&] {
    const Use object(peek(communicator));
    object->ranks->abort(reason == nullptr ? "" : reason);
  });
}

st_status st_communicator_sent_bytes(st_communicator* communicator, int64_t* bytes) {
  return guard([&] { given(bytes, "st_communicator_sent_bytes: bytes") = find(communicator)->ranks->sent_bytes(); });
}

st_status st_communicator_flight_record(st_communicator* communicator, const char** json) {
  return guard([&] {
    const char*& out = given(json, "st_communicator_flight_record: json");
    const auto object = find(communicator);
    object->answer = object->ranks->recorder().json();
    out = object->answer.c_str();
  });
}
