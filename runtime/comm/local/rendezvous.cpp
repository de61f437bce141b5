#include "comm/local/rendezvous.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "base/text.h"

namespace st {
namespace {

constexpr double kLookForOthers = 0.01;  // seconds between polls
constexpr double kForgetAfter = 60;      // seconds

class Start {
 public:
  explicit Start(const ProcessGroupOptions& options)
      : options_(options), end_(os::seconds() + options.patience), shape_(shape_of(options.size, ring_bytes_of(options))) {
    Digest digest;
    digest.update(options.job);
    name_ = digest.hex();
  }

  Rendezvous run() {
    Rendezvous rendezvous = come_in();
    try {
      rendezvous.segment.enter(options_.rank);
      wait_for_others(rendezvous.segment);
      rendezvous.segment.map_rings();
      rendezvous.segment.file().close();
      return rendezvous;
    } catch (const Error& error) {
      // If the others reported this error, aborting again changes nothing: the first failure is kept.
      const bool is_own = error.code() == Code::cancelled || error.place.rank < 0;
      rendezvous.segment.abort(failure_of(is_own ? options_.rank : error.place.rank, error));
      leave(rendezvous);
      throw;
    } catch (...) {
      leave(rendezvous);
      throw;
    }
  }

 private:
  static int64_t ring_bytes_of(const ProcessGroupOptions& options) {
    return options.ring_bytes > 0 ? options.ring_bytes : process_ring_bytes(options.size);
  }

  std::string prefix() const { return text("process group ", options_.job, ": "); }

  template <class... Parts>
  Error problem(Code code, int rank, const Parts&... parts) const {
    Error error(code, text(prefix(), parts...));
    error.place.rank = rank;
    return error;
  }

  Rendezvous come_in() {
    remove_others();
    for (;; check_patience()) {
      std::optional<SharedSegment> segment = SharedSegment::open(name_);
      const bool is_new = !segment;
      if (is_new) segment.emplace(SharedSegment::make(shape_));
      if (segment->is_spoilt()) {  // left by a failed start
        if (const auto refusal = segment->refusal_for(options_.rank)) {
          let_go(*segment);
          fail_with(*segment, *refusal);
        }
        segment->file().remove_name();
        continue;
      }
      if (segment->shape() != shape_) refuse_shape(*segment);
      try {
        // The heartbeat starts before the segment gets its name, so any segment that can be found has a live rank or is spoilt.
        auto heart = std::make_unique<Heartbeat>(segment->slot(options_.rank), options_.rank);
        if (!is_new || segment->file().publish(name_)) return {std::move(*segment), std::move(heart)};
      } catch (const Error& error) {
        if (error.code() != Code::busy || !segment->is_spoilt()) throw;  // otherwise the rank in that slot has gone meanwhile
      }
    }
  }

  void refuse_shape(SharedSegment& segment) const {
    const Error error = problem(Code::rank_mismatch, options_.rank, "rank ", options_.rank, " expects ", text_of(shape_),
                                "; the ranks before it expect ", text_of(segment.shape()), "; start all ranks with equal settings");
    segment.refuse(failure_of(options_.rank, error), std::max(options_.size, segment.size()));
    let_go(segment);
    throw error;
  }

  /// Removes leftovers of jobs with other names, which may never be started again.
  static void remove_others() {
    try {
      SharedSegment::remove_leftovers(kForgetAfter);
    } catch (const Error&) {  // /dev/shm cannot be listed; the next call shows whether it is usable
      return;
    }
  }

  void wait_for_others(SharedSegment& segment) const {
    for (;; segment.wait_until_open(kLookForOthers)) {
      // Read before are_rings_open(): once the rings are open, the start has succeeded and other ranks may leave or fail.
      const auto failure = segment.failure();
      const int gone = one_that_left(segment);
      if (segment.are_rings_open()) return;
      if (failure) fail_with(segment, *failure);
      if (gone >= 0) fail_with(segment, {gone, Code::rank_failed, "it left before all ranks had joined; its own error says why"});
      if (segment.all_are_here()) {
        segment.file().remove_name();
        segment.open_rings();
        return;
      }
      check_cancelled();
      if (os::seconds() > end_) fail_missing(segment);
    }
  }

  static int one_that_left(const SharedSegment& segment) {
    for (int rank = 0; rank < segment.size(); ++rank)
      if (segment.has_left(rank)) return rank;
    return -1;
  }

  static bool is_missing_one(const SharedSegment& segment) {
    for (int rank = 0; rank < segment.size(); ++rank)
      if (segment.host_of(rank).empty()) return true;
    return false;  // the last rank joined after the deadline
  }

  [[noreturn]] void fail_with(const SharedSegment& segment, const RankFailure& failure) const {
    if (failure.code == Code::timeout && is_missing_one(segment)) fail_missing(segment);  // another rank's deadline passed first
    const std::string host = failure.rank < 0 ? std::string() : segment.host_of(failure.rank);
    const std::string who = failure.rank < 0 ? std::string()  // it joined with another size, so it has no slot here
                                             : text("rank ", failure.rank, host.empty() ? "" : " (", host, host.empty() ? "" : ")", ": ");
    Error error = problem(failure.code, failure.rank, who, failure.reason);
    error.place.host = host;
    throw error;
  }

  [[noreturn]] void fail_missing(const SharedSegment& segment) const {
    std::string missing;
    int first = -1;
    for (int rank = 0; rank < segment.size(); ++rank) {
      if (!segment.host_of(rank).empty()) continue;
      missing += text(missing.empty() ? "" : ", ", rank);
      if (first < 0) first = rank;
    }
    throw problem(Code::timeout, first, "not all ", segment.size(), " ranks joined within ", options_.patience, " s; missing: ", missing,
                  "; start every rank on this machine with the same job name, or raise the deadline");
  }

  void check_cancelled() const {
    if (options_.is_cancelled && options_.is_cancelled())
      throw problem(Code::cancelled, options_.rank, "cancelled while waiting for other ranks");
  }

  void check_patience() const {
    check_cancelled();
    if (os::seconds() > end_)
      throw problem(Code::timeout, -1, "the file that an earlier job of this name left in /dev/shm could not be removed within ",
                    options_.patience, " s; remove it, or give the job another name");
  }

  /// The error as reported to the other ranks, which put the same prefix before it.
  RankFailure failure_of(int rank, const Error& error) const noexcept {
    RankFailure failure;
    failure.rank = rank;
    failure.code = error.code() == Code::cancelled ? Code::rank_failed : error.code();
    try {
      const std::string& message = error.message();
      failure.reason = message.starts_with(prefix()) ? message.substr(prefix().size()) : message;
    } catch (const std::bad_alloc&) {  // they learn the rank but not the reason
    }
    return failure;
  }

  void leave(Rendezvous& rendezvous) const noexcept {
    rendezvous.heart.reset();
    let_go(rendezvous.segment);
  }

  /// A refused segment stays for ranks that join later: without it they would wait for ranks that have gone.
  void let_go(SharedSegment& segment) const noexcept {
    if (segment.is_last_to_hear(options_.rank)) segment.file().remove_name();
  }

  const ProcessGroupOptions& options_;
  const double end_;
  const SegmentShape shape_;
  std::string name_;
};

}  // namespace

int64_t process_ring_bytes(int size) {
  constexpr int64_t kMost = int64_t{256} << 10, kAll = int64_t{128} << 20;
  int64_t bytes = kMost;
  while (bytes > os::SharedFile::kPage && bytes * size * (size - 1) > kAll) bytes /= 2;
  return bytes;
}

Rendezvous meet(const ProcessGroupOptions& options) { return Start(options).run(); }

}  // namespace st
