// Package browser has the tests of the console's page in Chromium, headless, driven with
// chromedp. Each view shows its data and follows the changes of other clients, hostile names
// stay text, and the page fits a phone.
//
// Without Chromium the tests are skipped. "make test" installs it with .ci/chromium where apt
// can. ZSETD_SCREENSHOTS=folder writes a picture of each view there.
package browser
