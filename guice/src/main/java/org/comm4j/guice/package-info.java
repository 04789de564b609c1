/// comm4j wired with Guice: [org.comm4j.guice.CommModule].
package org.comm4j.guice;
