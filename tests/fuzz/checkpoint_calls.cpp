// Checkpoints: folders with few names, so that writers and readers collide; valid and invalid views; damage from outside.
#include <unistd.h>

#include <array>
#include <limits>

#include "api_calls.h"
#include "call_arguments.h"

namespace st::fuzz {
namespace {

/// The folders of runs; none can be created in the folder "read", since these paths are files.
std::string run_folder(World& world) {
  static const std::array<const char*, 6> kFolders = {"run", "other_run", "run/step-00000002", "text.txt", "none/there", ""};
  const char* chosen = world.bytes.rarely(4) ? world.bytes.pick(kFolders) : kFolders[world.bytes.next() % 2];
  return World::folder() + "/write/" + chosen;
}

const char* checkpoint_name(World& world) {
  static const std::array<const char*, 6> kNames = {"step-00000002", "step-00000001", "latest", "../run", "", "\xff"};
  return world.bytes.rarely(3) ? world.bytes.pick(kNames) : nullptr;
}

void make_checkpoint(World& world) {
  auto* options = FILLED(st_checkpoint_options_init);
  if (options != nullptr && options->struct_size >= sizeof *options) {
    options->keep_last = 1;
    options->read_only = world.bytes.rarely(3) ? 1 : 0;
    if (world.bytes.rarely()) options->keep_every = world.number();
    if (world.bytes.rarely()) options->keep_best = world.number();
    if (world.bytes.rarely()) options->best = world.name();
    if (world.bytes.rarely()) options->queue = world.bytes.next() % 20;
    if (world.bytes.rarely()) options->file_bytes = world.number();
    if (world.bytes.rarely()) options->bytes_per_second = world.bytes.rarely(2) ? -1 : std::numeric_limits<double>::quiet_NaN();
  }
  const std::string folder = run_folder(world);
  MAKE(st_checkpoint_create, checkpoints, world.handle(world.contexts), world.bytes.rarely(32) ? nullptr : folder.c_str(), options);
}

const st_read_options* read_options(World& world) {
  if (world.bytes.rarely(2)) return nullptr;
  auto* options = FILLED(st_read_options_init);
  if (options == nullptr || options->struct_size < sizeof *options) return options;
  options->partial = world.bytes.rarely(2) ? 0 : 1;
  static const std::array<const char*, 4> kPatterns = {"*", "first.*", "a", "none.of.them"};
  auto** names = static_cast<const char**>(world.memory(sizeof(char*)));
  *names = world.bytes.rarely(16) ? nullptr : world.bytes.pick(kPatterns);
  if (world.bytes.rarely(2)) options->names = names, options->name_count = world.bytes.rarely(8) ? world.number() % 2 : 1;
  return options;
}

std::vector<st_named_view> own_views(World& world) {
  std::vector<st_named_view> views = {{"a", world.view_of({3, 4})}, {"b", world.view_of({5})}};
  if (world.bytes.rarely(8)) views[0].view.dtype = ST_F16;
  if (world.bytes.rarely(8)) views[1].view = world.view();
  if (world.bytes.rarely(8)) views[1].name = world.name();
  return views;
}

void save(World& world, st_checkpoint* checkpoint) {
  const std::vector<st_named_view> views = own_views(world);
  const int64_t step = world.bytes.rarely(4) ? world.number() : world.bytes.next() % 3, n = world.bytes.rarely(16) ? world.number() % 3 : 2;
  const char* metadata = world.bytes.rarely(3) ? json(world) : nullptr;
  PEND(st_checkpoint_save, checkpoint, step, n, views.data(), metadata);
}

/// Truncates a file of a checkpoint, as a disk or a user may do.
void damage(World& world) {
  static const std::array<const char*, 4> kFiles = {"manifest.json", "tensors.safetensors", "model.safetensors", "../latest"};
  const std::string file =
      World::folder() + "/write/run/step-0000000" + std::to_string(world.bytes.next() % 3) + "/" + world.bytes.pick(kFiles);
  static_cast<void>(truncate(file.c_str(), world.bytes.next()));
}

void look(World& world, st_checkpoint* checkpoint) {
  const char* text = nullptr;
  const char** out = world.bytes.rarely(32) ? nullptr : &text;
  const std::string folder = World::folder() + "/write/cut" + std::to_string(world.bytes.next() % 2);
  const Calls calls = {
      [&] { CALL(st_checkpoint_list, checkpoint, out); },
      [&] { CALL(st_checkpoint_inspect, checkpoint, checkpoint_name(world), out); },
      [&] { CALL(st_checkpoint_verify, checkpoint, checkpoint_name(world), out); },
      [&] { CALL(st_checkpoint_hash, checkpoint, checkpoint_name(world), out); },
      [&] {
        CALL(st_checkpoint_reshard, checkpoint, checkpoint_name(world), folder.c_str(),
             world.bytes.rarely(4) ? -1 : world.bytes.next() % 5);
      },
      [&] { CALL(st_checkpoint_export, checkpoint, checkpoint_name(world), path(world, "write").c_str(), world.bytes.next() % 2); },
      [&] { CALL(st_checkpoint_wait, checkpoint, world.bytes.rarely(2) ? -1 : world.bytes.next() % 4); },
      [&] { CALL(st_checkpoint_progress, checkpoint, FILLED(st_save_progress_init)); },
  };
  world.bytes.choose(8, calls);
}

void of_a_trainer(World& world, st_checkpoint* checkpoint) {
  st_trainer* trainer = world.handle(world.trainers);
  const Calls calls = {
      [&] {
        CALL(st_trainer_save_every, trainer, world.bytes.rarely(4) ? nullptr : checkpoint, world.bytes.rarely(4) ? world.number() : 16,
             world.bytes.rarely(4) ? -1 : 0);
      },
      [&] { PEND(st_trainer_save, trainer, checkpoint, world.bytes.rarely(3) ? json(world) : nullptr); },
      [&] {
        PEND(st_trainer_save_collective, trainer, checkpoint, world.bytes.rarely(3) ? json(world) : nullptr);
        CALL(st_trainer_save_every_collective, trainer, world.bytes.rarely(4) ? nullptr : checkpoint, world.number(), 0);
      },
      [&] {
        CALL(st_model_load, world.handle(world.models), checkpoint, checkpoint_name(world), read_options(world),
             FILLED(st_load_report_init));
      },
      [&] { CALL(st_trainer_resume, trainer, checkpoint, checkpoint_name(world), read_options(world), FILLED(st_load_report_init)); },
  };
  world.bytes.choose(6, calls);
}

}  // namespace

void checkpoint_use(World& world) {
  if (world.checkpoints.live.size() > 2) return DESTROY(st_checkpoint_destroy, checkpoints);
  if (world.checkpoints.live.empty() || world.bytes.rarely()) return make_checkpoint(world);
  st_checkpoint* checkpoint = world.handle(world.checkpoints);
  const Calls calls = {
      [&] { save(world, checkpoint); },
      [&] { damage(world); },
      [&] { of_a_trainer(world, checkpoint); },
      [&] { of_a_trainer(world, checkpoint); },
      [&] {
        const std::vector<st_named_view> views = own_views(world);
        CALL(st_checkpoint_load, checkpoint, checkpoint_name(world), world.bytes.rarely(16) ? world.number() % 3 : 2, views.data(),
             read_options(world), FILLED(st_load_report_init));
      },
      [&] { look(world, checkpoint); },
  };
  world.bytes.choose(8, calls);
}

}  // namespace st::fuzz
