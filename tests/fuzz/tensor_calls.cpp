// Tensors of the library, of the host, and from DLPack.
#include "api_calls.h"

#include <cstring>
#include <vector>

#include "call_arguments.h"

namespace st::fuzz {
void tensor_use(World& world) {
  if (world.tensors.live.size() > 5) return DESTROY(st_tensor_destroy, tensors);
  st_context* context = world.handle(world.contexts);
  st_view view = world.view();
  const Calls calls = {
      [&] { MAKE(st_tensor_create, tensors, context, view.dtype, view.rank, view.dims); },
      [&] {
        const size_t before = world.tensors.live.size();
        MAKE(st_tensor_wrap, tensors, context, world.bytes.rarely(16) ? nullptr : &view, released, &world);
        world.lent += static_cast<int64_t>(world.tensors.live.size() - before);
      },
      [&] {
        st_tensor* const given = world.handle(world.tensors);
        int32_t type = 0, index = 0;
        CALL(st_tensor_dlpack_device, given, view.rank < 0 ? nullptr : &type, &index);
        CALL(st_tensor_view, given, world.bytes.rarely() ? nullptr : &view);
      },
      [&] {
        // Exports and imports again: whoever consumes the tensor calls its deleter.
        DLManagedTensor* managed = nullptr;
        st_tensor* const given = world.handle(world.tensors);
        const bool is_on = view.rank == 2;  // on a stream, of which a tensor of the host's memory has no need
        if (is_on ? CALL(st_tensor_to_dlpack_on, given, view.bytes, &managed) : CALL(st_tensor_to_dlpack, given, &managed)) {
          const int32_t device = view.rank > 3 || view.rank < 0 ? view.rank : 1;  // kDLCPU; the hostile ranks serve as others
          std::memcpy(reinterpret_cast<char*>(managed) + 8, &device, sizeof device);
          const size_t before = world.tensors.live.size();
          st_context* owner = world.contexts.live.empty() ? nullptr : world.contexts.live.front();
          if (is_on)
            MAKE(st_tensor_from_dlpack_on, tensors, owner, managed, view.bytes);
          else
            MAKE(st_tensor_from_dlpack, tensors, owner, managed);
          if (world.tensors.live.size() == before) {
            // DLManagedTensor, version 0: a tensor of 48 bytes, the producer's pointer, the deleter.
            void (*deleter)(DLManagedTensor*) = nullptr;
            std::memcpy(&deleter, reinterpret_cast<const char*>(managed) + 56, sizeof deleter);
            if (deleter != nullptr) deleter(managed);
          }
        }
      },
      [&] {
        std::vector<char> room(view.bytes > 0 && view.bytes < (1 << 20) ? static_cast<size_t>(view.bytes) : 0);
        st_view to = view;
        to.data = room.data();
        to.bytes = static_cast<int64_t>(room.size());
        if (world.bytes.rarely(4)) to.dtype = static_cast<st_dtype>(world.number());
        CALL(st_view_convert, &view, world.bytes.rarely(16) ? nullptr : &to);
      },
  };
  world.bytes.choose(5, calls);
}

}  // namespace st::fuzz
