package org.comm4j.api;

/// A backend that was asked for can't be used here. There is no communicator.
public final class BackendUnavailableException extends CommException {
  private static final long serialVersionUID = 1L;
  private final String backend;
  private final String reason;
  private final String remedy;

  /// Makes the exception.
  ///
  /// @param backend the name that was asked for
  /// @param reason why it can't be used
  /// @param remedy what to do about it
  public BackendUnavailableException(String backend, String reason, String remedy) {
    super("backend '%s' is not available: %s; %s".formatted(backend, reason, remedy));
    this.backend = backend;
    this.reason = reason;
    this.remedy = remedy;
  }

  /// {@return the name that was asked for}
  public String backend() {
    return backend;
  }

  /// {@return why it can't be used}
  public String reason() {
    return reason;
  }

  /// {@return what to do about it}
  public String remedy() {
    return remedy;
  }
}
