// Who may touch a model's parameters when: a step's update alone, or any number of readers between two updates.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace st {

class WeightsGate {
 public:
  /// Waits until no reader is inside; then readers wait. Throws busy for another trainer's update that is paused: the thread that would end
  /// it may be this one.
  void begin_update();
  /// The update goes on in a later call (Trainer::advance): readers are refused instead of waiting for it. resume waits for nobody.
  void pause_update();
  void resume_update();
  void end_update();

  /// Grows whenever the parameters have changed, by whomever. Inside of a Reader it stands still.
  int64_t changes() const { return changes_; }

  /// An update for its lifetime, or until it is paused.
  class Updating {
   public:
    Updating(WeightsGate& gate, bool resumed) : gate_(gate) { resumed ? gate.resume_update() : gate.begin_update(); }
    ~Updating() {
      if (!paused_) gate_.end_update();
    }
    Updating(const Updating&) = delete;
    Updating& operator=(const Updating&) = delete;
    void pause() {
      gate_.pause_update();
      paused_ = true;
    }

   private:
    WeightsGate& gate_;
    bool paused_ = false;
  };

  /// Sees the parameters of one whole step for its lifetime. Waits for an update in progress; throws busy for one that is paused,
  /// or that this very thread is at (a host's callback from within it).
  class Reader {
   public:
    explicit Reader(WeightsGate& gate);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    WeightsGate& gate_;
  };

  /// Like Reader, but throws busy for an update in progress too: what reads shared weights says so instead of waiting.
  class TryReader {
   public:
    explicit TryReader(WeightsGate& gate);
    ~TryReader();
    TryReader(const TryReader&) = delete;
    TryReader& operator=(const TryReader&) = delete;

   private:
    WeightsGate& gate_;
  };

  /// Changes the parameters outside of a step (set, read, blend): an update for its lifetime. Throws busy instead of waiting for another
  /// one, since a paused one ends only when the host goes on with it.
  class Writer {
   public:
    explicit Writer(WeightsGate& gate);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

   private:
    WeightsGate& gate_;
  };

 private:
  enum class Update { none, running, paused };

  void leave();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<Update> update_ = Update::none;  // changed under the mutex
  std::thread::id updater_;                    // of the update that is running
  int64_t readers_ = 0;
  std::atomic<int64_t> changes_ = 0;
};

}  // namespace st
