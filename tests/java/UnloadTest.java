package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.scaletrain.*;

/** The native library stays loaded while a class loader has an object of it, and goes with the class loader. */
class UnloadTest {
  /** The code that an application server, for example, loads in a class loader of its own. */
  public static final class Plugin {
    static Context kept;

    private Plugin() {}

    /** Trains with functions of its own, on threads of the library and of the package. */
    public static void train(String how, Path folder) throws Exception {
      Context context = new Context(new ContextOptions().threads(2).log((level, area, text) -> {}));
      Data data = Data.rows(context, Nets.ROWS, Map.of("x", ArrayType.f32(1), "y", ArrayType.f32(1)), (rows, arrays) -> {
        for (int i = 0; i < rows.length; ++i) arrays.get("x").setFloat(i, rows[i]);
      });
      Model model = Nets.mlp(context);
      Trainer trainer = new Trainer(model, Nets.recipe(), data);
      Trainer cancelled = new Trainer(Nets.mlp(context), Nets.recipe(), Data.arrays(context, Nets.batch()));
      cancelled.runAsync(Long.MAX_VALUE, report -> {}).cancel(true);
      trainer.run(3, report -> {});
      trainer.stepAsync(Nets.batch()).get();
      try {
        trainer.step(Batch.of("x", Array.allocate(DType.F32, 2)));
      } catch (InvalidArgument refused) {
        // an exception that native code creates
      }
      Checkpoint checkpoint = new Checkpoint(context, folder);
      trainer.saveEvery(checkpoint, 1, Duration.ZERO);
      trainer.step();
      if (how.equals("dropped")) return;
      for (Handle one : List.of(trainer, checkpoint, model, data)) one.close();
      for (boolean isOpen = true; isOpen;) {
        try {
          cancelled.close();
          isOpen = false;
        } catch (Busy runs) {
          Thread.sleep(1);  // until the cancelled run has ended
        }
      }
      if (how.equals("live")) kept = context;
      else context.close();
    }
  }

  /** Loads, trains, drops; prints what is left after at most 20 seconds. */
  static final class Server {
    private static WeakReference<ClassLoader> loaded;

    public static void main(String[] how) throws Exception {
      load(how[0], Path.of(how[1]));
      int most = how[0].equals("live") ? 40 : 400;
      for (int i = 0; i < most && (loaded.get() != null || isMapped()); ++i) {
        System.gc();
        Thread.sleep(50);
      }
      System.out.println((loaded.get() == null ? "collected" : "there") + ", " + (isMapped() ? "mapped" : "not mapped"));
    }

    private static void load(String how, Path folder) throws Exception {
      URL[] places = {JavaProgram.jar().toUri().toURL(), Server.class.getProtectionDomain().getCodeSource().getLocation()};
      try (URLClassLoader loader = new URLClassLoader(places, ClassLoader.getPlatformClassLoader())) {
        loader.loadClass(Plugin.class.getName()).getMethod("train", String.class, Path.class).invoke(null, how, folder);
        loaded = new WeakReference<>(loader);
        if (!isMapped()) throw new AssertionError("the library was not loaded");
      }
    }

    private static boolean isMapped() throws Exception {
      return Files.readString(Path.of("/proc/self/maps")).contains("libscaletrain");
    }
  }

  @TempDir
  Path folder;

  private String left(String how) throws Exception {
    return JavaProgram.printed(JavaProgram.ofTests(Server.class, List.of(), how, folder.toString()));
  }

  @ParameterizedTest
  @ValueSource(strings = {"closed", "dropped"})
  void itGoesWithTheClassLoader(String how) throws Exception {
    assertEquals("collected, not mapped\n", left(how));
  }

  @Test
  void itStaysForALiveObject() throws Exception {
    assertEquals("there, mapped\n", left("live"));
  }
}
