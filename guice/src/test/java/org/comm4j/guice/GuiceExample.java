package org.comm4j.guice;

import com.google.inject.Guice;
import com.google.inject.Inject;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.ReduceOp;

/// The example of [CommModule]'s documentation.
final class GuiceExample {
  private GuiceExample() {}

  // @start region="application"
  static final class Trainer {
    private final Communicator communicator;

    @Inject
    Trainer(Communicator communicator) {
      this.communicator = communicator;
    }

    void average(float[] gradients) {
      communicator.allReduce(gradients, ReduceOp.AVERAGE);
    }
  }

  static void train(CommConfig config, float[] gradients) {
    var injector = Guice.createInjector(new CommModule(config));
    try (var _ = injector.getInstance(CommLifecycle.class)) {
      injector.getInstance(Trainer.class).average(gradients);
    }
  }
  // @end
}
