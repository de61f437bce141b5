#include "model/tensor_load.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/host_view.h"
#include "model/element_conversion.h"
#include "model/weights_match.h"

namespace st {
namespace {

int64_t bytes_of(const TensorTarget& target) { return target.elements * st::bytes_of(target.dtype); }

/// Part of a target, in bytes of it.
struct Stretch {
  size_t target;
  int64_t begin, end;
};

/// The contents of the targets before the load.
class Before {
 public:
  Before(std::span<const TensorTarget> targets, Context& context, Workers& workers)
      : targets_(targets), context_(context), workers_(workers) {
    int64_t bytes = 0;
    for (size_t t = 0; t < targets.size(); ++t) {
      places_.push_back(bytes);
      if (!targets[t].is_zero) bytes += bytes_of(targets[t]);
      for (int64_t begin = 0; begin < bytes_of(targets[t]); begin += kChecksumBlock)
        stretches_.push_back({t, begin, std::min(begin + kChecksumBlock, bytes_of(targets[t]))});
    }
    context.require_memory("load: a copy of the old values", bytes);
    kept_ = Memory(bytes, context.memory(), MemoryRole::other);
    each([&](const TensorTarget& target, std::byte* kept, const Stretch& part) {
      if (!target.is_zero) context_.backend().to_host(kept, target.to + part.begin, part.end - part.begin);
    });
  }

  void restore() {
    each([&](const TensorTarget& target, std::byte* kept, const Stretch& part) {
      if (target.is_zero)
        context_.backend().zero(target.to + part.begin, part.end - part.begin);
      else
        context_.backend().to_device(target.to + part.begin, kept, part.end - part.begin);
    });
  }

 private:
  template <class Body>
  void each(const Body& body) {
    workers_.run(std::ssize(stretches_), [&](int64_t i) {
      const Stretch& part = stretches_[static_cast<size_t>(i)];
      body(targets_[part.target], kept_.data() + places_[part.target] + part.begin, part);
    });
  }

  std::span<const TensorTarget> targets_;
  Context& context_;
  Workers& workers_;
  std::vector<int64_t> places_;  // by target, in kept_
  std::vector<Stretch> stretches_;
  Memory kept_;
};

/// Copies where there is room for them.
std::optional<Before> copies_of(std::span<const TensorTarget> targets, Context& context, Workers& workers) {
  try {
    return std::optional<Before>(std::in_place, targets, context, workers);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    return std::nullopt;
  }
}

class Load {
 public:
  Load(const CheckpointReader& reader, std::span<const TensorTarget> targets, Context& context)
      : reader_(reader), targets_(targets), backend_(context.backend()), first_nan_(targets.size(), 0) {
    // Whole blocks of a piece: a part of one is read and checked with all of it.
    for (size_t t = 0; t < targets.size(); ++t) {
      const int64_t width = st::bytes_of(targets[t].from->dtype), block = kChecksumBlock / width;
      const int64_t first = targets[t].first, last = first + targets[t].elements;
      for (const TensorPiece& piece : targets[t].from->pieces)
        for (int64_t begin = piece.begin; begin < std::min(piece.end, last); begin += block)
          if (const int64_t end = std::min({begin + block, piece.end, last}); end > first)
            stretches_.push_back({t, std::max(begin, first), end});
    }
  }

  /// check_cancelled() is asked before each block, from several threads, and throws to end it.
  void run(Workers& workers, const std::function<void()>& check_cancelled) {
    std::atomic<bool> has_failed = false;
    workers.run(std::ssize(stretches_), [&](int64_t i) {
      if (has_failed) return;
      try {
        check_cancelled();
        read(stretches_[static_cast<size_t>(i)]);
      } catch (...) {
        has_failed = true;
        throw;
      }
    });
    require_no_nan();
  }

  /// Reads what may hold no NaN, and changes nothing.
  void look_for_nan(Workers& workers) {
    workers.run(std::ssize(stretches_), [&](int64_t i) {
      const Stretch& part = stretches_[static_cast<size_t>(i)];
      const TensorTarget& target = targets_[part.target];
      if (target.may_hold_nan) return;
      std::vector<std::byte> elements(static_cast<size_t>((part.end - part.begin) * st::bytes_of(target.from->dtype)));
      reader_.read(*target.from, part.begin, part.end, elements);
      look_for_nan(part, elements.data());
    });
    require_no_nan();
  }

 private:
  /// All stretches are looked at before the first NaN is named, so that it does not depend on the threads.
  void look_for_nan(const Stretch& part, const std::byte* elements) {
    const TensorTarget& target = targets_[part.target];
    if (target.may_hold_nan) return;
    const int64_t at = first_nan(plain_view(target.from->name, target.from->dtype, {part.end - part.begin}, elements));
    if (at < 0) return;
    const std::lock_guard lock(finding_);
    first_nan_ = std::min(first_nan_, std::pair(part.target, part.begin + at));
  }

  void require_no_nan() const {
    const auto [target, element] = first_nan_;
    if (target < targets_.size()) refuse_nan(targets_[target].from->name, element, reader_.folder());
  }

  void read(const Stretch& part) {
    const TensorTarget& target = targets_[part.target];
    const LogicalTensor& from = *target.from;
    const int64_t elements = part.end - part.begin, width = st::bytes_of(target.dtype);
    const Address place = target.to + (part.begin - target.first) * width;
    if (from.dtype == target.dtype && backend_.is_host_memory()) {
      reader_.read(from, part.begin, part.end, {backend_.in_host(place), static_cast<size_t>(elements * width)});
      return look_for_nan(part, backend_.in_host(place));
    }
    std::vector<std::byte> read(static_cast<size_t>(elements * st::bytes_of(from.dtype)));
    reader_.read(from, part.begin, part.end, read);
    look_for_nan(part, read.data());
    if (from.dtype == target.dtype) return backend_.to_device(place, read.data(), elements * width);
    const FloatMode mode;
    std::vector<std::byte> converted(static_cast<size_t>(elements * width));
    convert_elements(from.dtype, read.data(), target.dtype, converted.data(), elements);
    backend_.to_device(place, converted.data(), elements * width);
  }

  const CheckpointReader& reader_;
  std::span<const TensorTarget> targets_;
  Backend& backend_;
  std::vector<Stretch> stretches_;  // in elements
  std::mutex finding_;
  std::pair<size_t, int64_t> first_nan_;  // target and element; past all targets: none was found
};

/// Makes `call` and throws if it failed here or, in a group, on any other rank.
template <class Call>
void meeting(const MeetOthers& meet, const Call& call) {
  if (!meet) return call();
  std::exception_ptr own;
  try {
    call();
  } catch (...) {
    own = std::current_exception();
  }
  meet(own);
}

void require_whole(const CheckpointReader& reader, Workers& workers) {
  const std::vector<CheckpointProblem> problems = reader.verify(workers, 1);
  if (problems.empty()) return;
  Error error(Code::corrupt, problems.front().message);
  error.place.file = problems.front().file;
  error.place.tensor = problems.front().tensor;
  error.place.offset = problems.front().offset;
  throw error;
}

}  // namespace

void load_tensors(const CheckpointReader& reader, std::span<const TensorTarget> targets, Context& context, Workers& workers,
                  const CancelToken* cancelled, bool& has_torn_state, const MeetOthers& meet) {
  Load load(reader, targets, context);
  std::optional<Before> before = copies_of(targets, context, workers);
  if (before) {
    try {
      return meeting(meet, [&] {
        load.run(workers, [&] {
          require(cancelled == nullptr || !cancelled->is_set(), Code::cancelled, "load: cancelled; nothing has changed");
          reader.require_not_cancelled();
        });
      });
    } catch (...) {
      before->restore();
      throw;
    }
  }
  meeting(meet, [&] {
    require_whole(reader, workers);
    load.look_for_nan(workers);
  });
  try {
    load.run(workers, [] {});  // to the end, since there is no way back
  } catch (const Error& error) {
    has_torn_state = true;
    Error told(error.code(),
               text(error.message(), "; there was no memory to roll the load back, so the tensors are partly replaced: load again"));
    told.place = error.place;
    throw told;
  } catch (...) {
    has_torn_state = true;
    throw;
  }
}

}  // namespace st
