using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>Arrays that the library looks at beyond the call that gave them: forward's until the backward behind it, those of a step in slices until
/// it is whole.</summary>
internal sealed class LastingPins {
  private readonly NativeHandle owner;
  private readonly List<Pins> pins = new List<Pins>();
  private Batch last;

  internal LastingPins(NativeHandle owner) { this.owner = owner; }

  /// <summary>Pinned until <see cref="End"/>; the same batch again stays as it is.</summary>
  internal Pins Of(Batch batch) {
    if (pins.Count > 0 && last == batch) return pins[pins.Count - 1];
    Pins made = Pins.Hold(batch);
    owner.Lend(made);
    pins.Add(made);
    last = batch;
    return made;
  }

  internal void End() {
    foreach (Pins one in pins) owner.GiveBack(one);
    pins.Clear();
    last = null;
  }
}

}
