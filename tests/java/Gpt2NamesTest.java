package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.scaletrain.*;

/** Hugging Face's GPT-2 files are read without conversion. Their logits: tests/capi/gpt2_names.cpp. */
class Gpt2NamesTest {
  private static final Path FIXTURES =
      Path.of(System.getenv().getOrDefault("ST_SOURCES", "."), "tests/conformance/fixtures/gpt2");

  private static ReadReport read(Model model, ReadOptions options) throws IOException {
    try (InputStream file = Files.newInputStream(FIXTURES.resolve("model.safetensors"))) {
      return model.read(file, options);
    }
  }

  @Test
  void aFileOfTransformersIsReadByName() throws IOException {
    Map<String, Object> options = Map.of("layers", 2, "width", 24, "heads", 3, "context", 16, "vocabulary", 61);
    try (Context context = new Context(); Model model = Model.builtin(context, "gpt", options, 5)) {
      NotFound told = assertThrows(NotFound.class, () -> read(model, new ReadOptions()));
      assertTrue(told.getMessage().contains("token_embedding.weight"), told.getMessage());
      ReadReport report = read(model, new ReadOptions().rename(Model.gpt2Names()));
      assertEquals(new ReadReport(model.parameters().size(), List.of(), List.of()), report);
    }
  }
}
