using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>How a text goes on.</summary>
public sealed class GenerateOptions {
  /// <summary>At most so many.</summary>
  public long Tokens { get; set; } = 200;
  /// <summary>0: the likeliest.</summary>
  public double Temperature { get; set; } = 0.8;
  /// <summary>Of the likeliest so many.</summary>
  public long TopK { get; set; } = 40;
  /// <summary>What is drawn follows from it.</summary>
  public long Seed { get; set; }
}

/// <summary>Forward passes of a model, from any number of threads.</summary>
public sealed class Predictor : Handle {
  private readonly Native.Predictor native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>shared: of the model's weights as they are, instead of a snapshot. threads: of one run.</summary>
  [OfC("st_predictor_create")]
  public Predictor(Model model, bool shared = false, int threads = 1) {
    var raw = new Native.PredictorOptions { shared = shared, threads = threads };
    native = new Native.Predictor(Given(model, "model").native, raw);
    raw.handle.Dispose();
    Safe.KeepWhat(model.Safe);
  }

  /// <summary>Fills the outputs, any number of rows. From any thread, several at once, also while a trainer steps.</summary>
  [OfC("st_predictor_run")]
  public void Run(Batch inputs, Batch outputs) {
    using (Pins ins = Pins.Borrow(Given(inputs, "inputs")))
      using (Pins outs = Pins.Borrow(Given(outputs, "outputs"))) native.run(ins.All, outs.All);
  }

  /// <summary>Takes the newest whole step's weights.</summary>
  [OfC("st_predictor_refresh")]
  public void Refresh() { native.refresh(); }

  /// <summary>Continues the prompt: the new tokens. <paramref name="onToken"/> gets each as it is made, and gives false to end the text; what it throws
  /// arrives here.</summary>
  [OfC("st_predictor_generate")]
  public int[] Generate(IReadOnlyList<int> prompt, GenerateOptions options = null, Func<int, bool> onToken = null) {
    GenerateOptions wish = options ?? new GenerateOptions();
    var raw = new Native.GenerateOptions { tokens = wish.Tokens, temperature = wish.Temperature, top_k = wish.TopK, seed = wish.Seed };
    var given = new Writing();
    given.AddAll(Given(prompt, "prompt"), token => given.Add(token));
    var made = new List<int>();
    Func<int, bool> take = token => {
      made.Add(token);
      return onToken == null || onToken(token);
    };
    native.generate(given.Done(), raw, Bridge.Strong(Safe, take));
    raw.handle.Dispose();
    return made.ToArray();
  }
}

}
