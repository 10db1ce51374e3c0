// Canvases that are as sharp as the screen, and figures as files.
import { h, save } from "./dom.js";

// sized makes a canvas's pixels those of the screen, and returns its context and
// its size in CSS pixels.
export function sized(canvas, height) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth || canvas.parentElement?.clientWidth || 600;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
  }
  const c = canvas.getContext("2d");
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  return { c, width, height };
}

// color reads a colour of the style sheet.
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// saveCanvas is a button that saves a canvas as PNG.
export const saveCanvas = (canvas, name) => h("button", { type: "button", class: "plain", onclick: () => canvas.toBlob((b) => save(name + ".png", b)) }, "PNG");

// saveSVG is a pair of buttons that save a drawing as SVG and as PNG.
export function saveSVG(svg, name) {
  const source = () => {
    const copy = svg.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    // The file has no style sheet: what the page's says is written into it.
    const from = svg.querySelectorAll("*"), to = copy.querySelectorAll("*");
    from.forEach((e, i) => {
      const st = getComputedStyle(e);
      for (const k of ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "text-anchor"]) to[i].setAttribute(k, st.getPropertyValue(k));
      to[i].removeAttribute("class");
    });
    return new XMLSerializer().serializeToString(copy);
  };
  return [
    h("button", { type: "button", class: "plain", onclick: () => save(name + ".svg", new Blob([source()], { type: "image/svg+xml" })) }, "SVG"),
    h("button", {
      type: "button", class: "plain", onclick: () => {
        const box = svg.viewBox.baseVal, image = new Image();
        image.onload = () => {
          const canvas = h("canvas", { width: 2 * box.width, height: 2 * box.height });
          canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
          canvas.toBlob((b) => save(name + ".png", b));
        };
        image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(source());
      },
    }, "PNG"),
  ];
}
