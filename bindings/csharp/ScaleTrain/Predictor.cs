using System;
using System.Collections.Generic;

namespace ScaleTrain {

/// <summary>Options of <see cref="Predictor.Generate"/>.</summary>
public sealed class GenerateOptions {
  /// <summary>Maximum number of new tokens.</summary>
  public long Tokens { get; set; } = 200;
  /// <summary>Above 1 the choice is more uniform; 0 means the likeliest token.</summary>
  public double Temperature { get; set; } = 0.8;
  /// <summary>Chooses among this many likeliest tokens.</summary>
  public long TopK { get; set; } = 40;
  /// <summary>Seed of the random choices.</summary>
  public long Seed { get; set; }
}

/// <summary>Runs forward passes of a model, from any number of threads.</summary>
public sealed class Predictor : Handle {
  private readonly Native.Predictor native;
  internal override NativeHandle Safe { get { return native.handle; } }

  /// <summary>shared uses the model's current weights instead of a snapshot. threads is the number of threads of one run.</summary>
  [OfC("st_predictor_create")]
  public Predictor(Model model, bool shared = false, int threads = 1)
      : this(model, Made(shared, threads, options => new Native.Predictor(Given(model, "model").native, options))) {}

  /// <summary>A predictor that all ranks create, whose runs, refreshes and generations all ranks make too, each with its own rows or text. It works
  /// for every model; the constructor throws <see cref="WrongStateException"/> for one that is sharded over ranks.</summary>
  [OfC("st_predictor_create_collective")]
  public static Predictor Collective(Model model, bool shared = false, int threads = 1) {
    return new Predictor(model, Made(shared, threads, options => Native.Predictor.collective(Given(model, "model").native, options)));
  }

  private Predictor(Model model, Native.Predictor made) {
    native = made;
    Safe.KeepWhat(model.Safe);
  }

  private static Native.Predictor Made(bool shared, int threads, Func<Native.PredictorOptions, Native.Predictor> make) {
    var raw = new Native.PredictorOptions { shared = shared, threads = threads };
    Native.Predictor made = make(raw);
    raw.handle.Dispose();
    return made;
  }

  /// <summary>Computes the outputs for any number of rows. Several threads may call it at once, even while a trainer steps.</summary>
  [OfC("st_predictor_run")]
  public void Run(Batch inputs, Batch outputs) {
    using (Pins ins = Pins.Borrow(Given(inputs, "inputs")))
      using (Pins outs = Pins.Borrow(Given(outputs, "outputs"))) native.run(ins.All, outs.All);
  }

  /// <summary>Switches to the weights of the newest finished step.</summary>
  [OfC("st_predictor_refresh")]
  public void Refresh() { native.refresh(); }

  /// <summary>Continues the prompt and returns the new tokens. <paramref name="onToken"/> receives each new token and returns false to stop. Its
  /// exceptions are rethrown here.</summary>
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
